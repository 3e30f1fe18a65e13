"""The code on pages of the documentation."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def blocks(page, containing="", language="python"):
    """The code blocks in a language, with a text in them, of a page, whose path begins at the root."""
    found = re.findall(rf"```{re.escape(language)}\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)
    return [block for block in found if containing in block]
