"""Static sites: HTML and CSS on disk, looked through for what a browser would ask for."""
