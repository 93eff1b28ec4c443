"""Places that hold logs, one file each, behind the contract in `clew.engines.contract`."""
