"""Engines around engines: each keeps the contract of `clew.engines.contract` and adds one thing to it."""
