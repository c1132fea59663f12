"""HTML and CSS, looked through for what a browser would ask for."""
