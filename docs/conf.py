"""How Sphinx builds the documentation site; `make docs` prepares what it reads."""

from __future__ import annotations

import h3sim

project = "h3sim"
author = "The h3sim developers"
project_copyright = author
version = release = h3sim.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.githubpages", "sphinx.ext.napoleon"]
root_doc = "index"
html_theme = "furo"
html_title = f"h3sim {version}"
# What a page was made from is in the repository; without copies the site is half as large.
html_copy_source = False
html_show_copyright = False
html_extra_path = ["../build/docs/extra"]
exclude_patterns = ["downloads"]

# Notebooks come with their outputs (tools/notebooks.py); standard error is progress bars.
nb_execution_mode = "off"
nb_output_stderr = "remove"
nb_merge_streams = True
nb_number_source_lines = False
nb_code_prompt_show = "Show {type}"

# The files are read on code hosts as well, where every heading is a target of links.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# On code hosts a console block is a shell session with any output.
suppress_warnings = [
    "misc.highlighting_failure",
    # A type such as Hypothesis' `settings` has the name of several attributes.
    "ref.python",
]

# In docstrings `this` is code, as it is in the Markdown files.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
napoleon_numpy_docstring = False
python_maximum_signature_line_length = 88
