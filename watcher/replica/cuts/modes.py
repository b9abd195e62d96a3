"""What a copy keeps of its table beyond the rows that are there now, and in which columns. The mode
of a copy is fixed when it is made: its columns tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, get_args

from watcher.model.errors import ConfigurationError

Mode = Literal["latest", "keep-deleted", "history"]
"""``latest``: the rows of the table. ``keep-deleted``: deleted rows stay, and are marked.
``history``: every version of a row stays."""
LATEST: Mode = "latest"
KEEP_DELETED: Mode = "keep-deleted"
HISTORY: Mode = "history"
MODES: tuple[Mode, ...] = get_args(Mode)

DELETED_AT = "_deleted_at"
"""The commit timestamp of the deletion; NULL in a row that is there."""
VALID_FROM, VALID_TO = "_valid_from", "_valid_to"
"""A version is that of its row from the one on until before the other; NULL: it is the current one.
Of a deletion both are its commit timestamp."""
OPERATION, TRANSACTION = "_operation", "_transaction_id"
COLUMNS: Mapping[Mode, tuple[str, ...]] = {
    LATEST: (),
    KEEP_DELETED: (DELETED_AT,),
    HISTORY: (VALID_FROM, VALID_TO, OPERATION, TRANSACTION),
}
"""What copies of a mode have beyond the others. No column of Spanner begins with an underscore."""
OWN_COLUMNS = frozenset(name for names in COLUMNS.values() for name in names)
ENDS: Mapping[Mode, str] = {KEEP_DELETED: DELETED_AT, HISTORY: VALID_TO}
"""The column that is NULL in the rows that the table has."""
LOADED = "LOAD"
"""The operation of a row that was there when the history began: ``_valid_from`` is when it was
read."""


def find_mode(columns: Iterable[str]) -> Mode:
    """The mode of a copy with these columns."""
    names = set(columns)
    return next((mode for mode, own in COLUMNS.items() if own and names.issuperset(own)), LATEST)


def check_mode(copy: str, columns: Iterable[str], wanted: Mode) -> None:
    """Raises ConfigurationError for a copy of another mode."""
    there = find_mode(columns)
    if there != wanted:
        raise ConfigurationError(
            f"{copy} was made with mode = '{there}', which is fixed: use --mode {there}, or"
            f" another folder for --mode {wanted}"
        )
