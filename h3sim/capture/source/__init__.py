"""A file as text, part by part, value by value, whatever is wrong with it."""
