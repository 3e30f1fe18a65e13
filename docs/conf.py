"""Settings of the documentation site. `make docs` builds it."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
# The tutorial calls the `rollcall` command of this environment, in a folder of its own.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
os.environ["PYTHONPATH"] = f"{HERE.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
os.environ |= {"COLUMNS": "90", "TTY_COMPATIBLE": "0"}  # plain text, although the kernel asks for colours
for name in ("ROLLCALL_STORE", "MLFLOW_TRACKING_URI"):
    os.environ.pop(name, None)

project = "Rollcall"
author = "The Rollcall developers"
copyright = author
extensions = [
    "extension",
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build"]

# Pages: MyST Markdown. The tutorial is a notebook in Markdown that runs when the site is built.
myst_enable_extensions = ["deflist", "colon_fence"]
myst_heading_anchors = 3
nb_execution_mode = "auto"
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True

# API: docstrings are plain text with single backticks around code.
default_role = "code"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_inherit_docstrings = False  # Lightning's are not for this site
python_use_unqualified_type_names = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_preprocess_types = False

highlight_language = "text"  # of formulas in docstrings
nitpicky = True
suppress_warnings = ["ref.python"]  # two attributes of one name, in a type that autodoc links
# There is no network to look other projects up; only links into this project must resolve.
nitpick_ignore_regex = [(r"py:.*", r"(?!rollcall\.).*")]

html_theme = "furo"
html_title = "Rollcall"
html_show_sphinx = False
html_theme_options = {"source_edit_link": "", "top_of_page_buttons": []}
copybutton_prompt_text = r"\$ |>>> "
copybutton_prompt_is_regexp = True
