"""Protocols of other programs on our store; none of these programs has to be installed."""
