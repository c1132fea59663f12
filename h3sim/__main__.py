"""Lets `python -m h3sim` do what `h3sim` does."""

import sys

from h3sim.cli import main

if __name__ == "__main__":
    sys.exit(main())
