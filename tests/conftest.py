"""What all tests share: Hypothesis looks at the same cases, and terminals are equally wide."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("thorough", max_examples=2000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
os.environ["COLUMNS"] = "100"
