"""Figures, animations and self-contained HTML reports of loads, studies and logs.

The only room that loads matplotlib, and only for figures: HTML needs none, so names are loaded
when they are first used. It may import loads, studies and advice. Begin with
`load_plots.py` (the methods of `load.plot`) and `build.py` (reports).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
