"""One file for each way to say which session is meant."""
