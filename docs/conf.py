"""How the documentation is built: Sphinx with MyST, offline, warnings as errors."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "memoryfield lab"
author = "memoryfield lab contributors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "command_help", "notebook_links"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = project
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
autodoc_typehints = "description"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
nitpicky = False
exclude_patterns = ["_build", "notebook_pages"]
suppress_warnings = ["ref.python", "sphinx_autodoc_typehints"]
