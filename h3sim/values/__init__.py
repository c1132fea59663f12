"""Values and errors that every room may use: units, ranges, text, tables, random streams.

It imports nothing of h3sim. Begin with `errors.py` and `units.py`.
"""
