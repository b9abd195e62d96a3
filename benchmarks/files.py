"""Files by which the processes of a run tell each other something: whole, or not there."""

from __future__ import annotations

from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Writes a file that nobody sees half written."""
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    part.rename(path)
