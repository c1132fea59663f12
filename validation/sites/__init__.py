"""Sites of public packages in a real Chromium over shaped links, beside what h3sim predicts.

`python -m validation.sites` has one command per step: `collect` unpacks packages, `record` loads
each site once without throttling, `measure` loads it over the links of `link.py`, and `table`
compares the two. Recording and measuring are apart: nothing that `table` predicts from knows a
link. Sites are developed on, or kept for the published table (`packages.py`).
"""
