"""Kinds of forks: what a new session takes from the one that it begins with."""
