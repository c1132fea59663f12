"""Files of every format that are made to take time or memory, read within limits."""
