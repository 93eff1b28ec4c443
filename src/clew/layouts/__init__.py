"""Where things are called what: pure naming, no file is touched here."""
