"""How a page is cut into paragraphs, each of which is a template of the catalogues.

Used by what shows a page, and by the tool that makes the catalogues, which loads this file alone:
it imports nothing of gpucheck.
"""

import inspect
import re

EXAMPLES = "\b"
"""Begins a paragraph whose lines stay as they are, as click has it."""
_BLANKS = re.compile(r"\s+")


def parts(text: str) -> list[str]:
    """Return the paragraphs of a page with their lines."""
    return [part for part in re.split(r"\n\s*\n", inspect.cleandoc(text)) if part.strip()]


def template_of(part: str) -> str:
    """Return the template of a paragraph: on one line, unless its lines stay as they are."""
    return part if part.startswith(EXAMPLES) else _BLANKS.sub(" ", part).strip()


def paragraphs(text: str) -> list[str]:
    """Return the templates of a page."""
    return [template_of(part) for part in parts(text)]


def comment_of(example: str) -> str:
    """Return the comment of an example of a command's help; "" if it has none."""
    return example.partition("  # ")[2].strip()
