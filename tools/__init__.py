"""Programs that make what is shipped; they are not part of the package."""
