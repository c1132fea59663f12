"""Cases worked out by hand; the comments show the working."""
