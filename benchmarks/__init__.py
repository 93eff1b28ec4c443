"""How fast clew is, and against what: `python -m benchmarks`. See docs/benchmarks.md.

A subject is one file with a function that takes a `Bench` and gives `Measured` values, and one line in `table.py`.
"""
