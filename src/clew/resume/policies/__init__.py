"""One file for each choice between the sessions that `continue` could take."""
