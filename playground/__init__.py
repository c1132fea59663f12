"""The playground: a static page, and what it runs in the browser."""
