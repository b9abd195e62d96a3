"""Tables and cells of Markdown, for pages that are made of code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

GENERATED = (
    "<!-- Made from the code by scripts/reference_pages: change it there, run make docs. -->"
)
CODE = re.compile(r"(`[^`]*`)")


class MissingDescriptionError(Exception):
    """The code does not say what something means."""


def require_text(text: str | None, what: str, where: str) -> str:
    """The text in one line. Raises MissingDescriptionError that names what has none."""
    if not text or not text.strip():
        raise MissingDescriptionError(f"{what} has no description: write one in {where}")
    return " ".join(text.split())


def format_prose(text: str) -> str:
    """A docstring's text as Markdown: its code, and nothing else of it, is markup."""
    parts = CODE.split(text.replace("``", "`"))
    return "".join(
        part if part.startswith("`") else re.sub(r"([*<\[\]])", r"\\\1", part) for part in parts
    )


def code(text: str) -> str:
    """A text as code."""
    return f"`{text}`"


def make_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table, and an empty one. Raises ValueError for a cell that would be two."""
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    shown = list(rows)
    if any("|" in cell for row in shown for cell in row):
        # GitHub and the site do not agree on how to write one inside of code.
        raise ValueError(f"write {shown} without '|'")
    lines += [f"| {' | '.join(row)} |" for row in shown]
    return [*lines, ""]


def make_page(title: str, *lines: str) -> str:
    """A page with a title."""
    return "\n".join([f"# {title}", "", GENERATED, "", *lines]).rstrip() + "\n"
