"""What a misspelt name probably meant, for messages."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def suggest_name(name: str, known: Iterable[str], otherwise: str) -> str:
    """``did you mean 'x'?`` with the nearest known name; else ``otherwise`` and all known names."""
    names = sorted(known)
    nearest = get_close_matches(name, names, n=1, cutoff=0.5)
    if nearest:
        return f"did you mean '{nearest[0]}'?"
    return f"{otherwise}: {', '.join(names) or 'none'}"
