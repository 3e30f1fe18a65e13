"""Sphinx extension: writes the reference pages from the code each time the site is built.

The pages go to `docs/reference/generated`, which git ignores.
"""

from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from docstrings import restructured
from docutils.nodes import Element
from reference_pages import pages
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


def write_pages(app: Sphinx) -> None:
    """Write every page whose text has changed, and remove pages of things that are gone."""
    folder = Path(app.srcdir) / "reference" / "generated"
    written = pages()
    for name, text in written.items():
        file = folder / name
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    for file in folder.rglob("*.*"):
        if str(file.relative_to(folder)) not in written:
            file.unlink()


def clean_docstring(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Make a plain docstring valid reStructuredText, before napoleon reads its sections."""
    lines[:] = restructured(lines)


def plain_where_undocumented(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, contnode: Element
) -> Element | None:
    """A type in a signature that exists but has no entry, such as a type variable, is shown without a link."""
    try:
        resolve_name(node["reftarget"])
    except (ImportError, AttributeError, ValueError):
        return None
    return contnode if node.get("refdomain") == "py" else None


def setup(app: Sphinx) -> dict[str, Any]:
    app.setup_extension("sphinx.ext.autodoc")  # whose event is used below
    app.connect("builder-inited", write_pages, priority=100)
    app.connect("autodoc-process-docstring", clean_docstring, priority=100)
    app.connect("missing-reference", plain_where_undocumented)
    return {"parallel_read_safe": True}
