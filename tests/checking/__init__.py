"""An independent checker of loads: reads the page, the links' settings and the trace alone.

`python -m tests.checking 10000` (`make check-loads`) draws so many faulty loads and checks each.
Nothing here calls the code that made the trace, so that the two cannot share a mistake.
"""
