"""Mutation testing: small mistakes in the core, each of which a test should notice.

`python -m tools.mutation` (`make mutants`) draws them by seed, runs for each the tests that reach
its line, and prints how many were noticed, with the interval in which the share of all lies.

Why no library: both that are kept were tried on `h3sim/schedulers` first. `mutmut` 3.8 keeps every
variant of every function in memory and chooses at each call, so loads take 1.5 to 2 times as long;
it leaves out properties, decorated functions, defaults of fields and constants of modules, and runs
for what survives every test that calls the function, which is minutes in the engine. `cosmic-ray`
8.7 starts the whole test command anew for each mutant. Here each is a fork of a process that has
loaded everything else (half a second), the tests are those of a line, and they end at a limit.
"""
