"""Settings of the documentation site. `make docs` builds it."""

import os
import sys
from pathlib import Path

from sphinx.application import Sphinx

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
extensions = ["myst_nb", "sphinx_copybutton"]
exclude_patterns = ["_build"]

# Pages: MyST Markdown. The tutorial is a notebook in Markdown that runs when the site is built.
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
nb_execution_mode = "auto"
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True

highlight_language = "text"  # of formulas in docstrings

html_theme = "furo"
html_title = "Rollcall"
html_show_sphinx = False
html_theme_options = {"source_edit_link": "", "top_of_page_buttons": []}
copybutton_prompt_text = r"\$ |>>> "
copybutton_prompt_is_regexp = True


def write_pages(app: Sphinx) -> None:
    """Write the reference pages whose text has changed to `docs/reference/generated`, and remove the others."""
    from reference_pages import pages

    folder, written = Path(app.srcdir) / "reference" / "generated", pages()
    for file in folder.rglob("*.*"):
        if str(file.relative_to(folder)) not in written:
            file.unlink()
    for name, text in written.items():
        file = folder / name
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write_pages, priority=100)
    return {"parallel_read_safe": True}
