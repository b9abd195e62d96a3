"""``FORMAT:FOLDER``: how the copies of a replica are named."""

from __future__ import annotations

from watcher.replica.cuts import DELTA, ICEBERG, PARQUET

FORMATS = (DELTA, ICEBERG, PARQUET)
SPELLINGS = tuple(f"{each}:FOLDER" for each in FORMATS)


def split_copies(text: str) -> tuple[str | None, str]:
    """The format and the folder; no format where the text is a folder alone."""
    format_, _, folder = text.partition(":")
    return (format_, folder) if format_ in FORMATS else (None, text)
