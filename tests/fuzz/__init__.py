"""Broken recordings without end, for `make fuzz`; the suite looks at a few of them."""
