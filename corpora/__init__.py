"""The shipped pages, as JSON."""
