"""Comparisons with real stacks and with papers; slow, and run by make targets of their own."""
