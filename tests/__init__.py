"""The tests: four kinds of truth, a folder for each."""
