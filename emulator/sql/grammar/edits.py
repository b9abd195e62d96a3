"""Edits of a statement's text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """The characters from ``start`` to ``end`` become ``text``."""

    start: int
    end: int
    text: str
