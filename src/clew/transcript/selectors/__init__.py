"""What a point may be given by, one file each; `clew.transcript.points` says what a point is."""
