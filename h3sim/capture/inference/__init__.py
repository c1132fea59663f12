"""What follows from the requests that were seen, in one way for all dialects."""
