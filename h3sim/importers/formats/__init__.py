"""Readers of recordings, one for each family of dialects, and of static sites."""
