"""Statistics of a study: paired differences, intervals, wins, Friedman ranks, sample sizes.

Each method is documented with its source and assumptions; `docs/studies.md` summarizes them. Begin
with `contrasts.py`; `pairs.py` says which loads are compared, `intervals.py` how sure a mean is.
"""
