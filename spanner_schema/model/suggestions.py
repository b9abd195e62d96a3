"""What a misspelt name probably meant, for messages."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def suggest_name(name: str, known: Iterable[str], otherwise: str) -> str:
    """``did you mean 'x'?`` with the nearest known name, without regard to case; else ``otherwise``
    and all known names."""
    names = {each.casefold(): each for each in sorted(known)}
    nearest = get_close_matches(name.casefold(), names, n=1, cutoff=0.5)
    if nearest:
        return f"did you mean '{names[nearest[0]]}'?"
    return f"{otherwise}: {', '.join(names.values()) or 'none'}"
