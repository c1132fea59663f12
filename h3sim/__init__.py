"""Replays web pages through HTTP/2 and HTTP/3 prioritization schemes, without sockets.

>>> import h3sim
>>> load = h3sim.simulate("davies-meenan", scheme="bucket-html")
>>> load.byte_index("atf") < h3sim.simulate("davies-meenan", scheme="rr").byte_index("atf")
True

- one load: `simulate`, a `Load`: figures, timings, `load.plot`, `load.lower_bound`
- many loads: `compare` (a table), `search` (which scheme is best), `sweep` (a study),
  `optimality`, `what_if`; `report` writes it all into one file, `h3sim.study` has more
- what is there: `list_pages`, `list_schemes`, `list_networks`, `list_profiles`; `load_page` etc.
- files: `read_load`, `read_results`
- recordings: `predict` (paints and load event over other networks), `recommend` (the scheme that
  suits a HAR's page best), `import_page`; `read_qlog`
  reads a log, `identify` names the scheduler behind it; `load.to_har` writes a HAR
- checks: `reproduce` (the papers), `show_versions`; of servers and rules in `h3sim.advice`
- options: `help(h3sim.LoadConfig)` explains those that `simulate` and the others take
- your own: `help(h3sim.schedulers)`, `help(h3sim.engine)`; `import h3sim.conformance` for its laws

Importing this is quick: each name is loaded when it is first used. Simulating loads SimPy and the
standard library only; figures and tables load what they need when they are made.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
