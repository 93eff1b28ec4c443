"""Kinds of forks: how a new session begins with the conversation of another. `table` names them."""
