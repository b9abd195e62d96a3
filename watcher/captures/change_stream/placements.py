"""The functions that read a change stream by placement: from the database, never guessed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from watcher.captures.change_stream.watched import WatchedStream
from watcher.captures.statements import list_read_functions
from watcher.model.errors import StreamNotFoundError
from watcher.spanner.results.wire import collect_rows, parse_cell
from watcher.spanner.stream import QueryStream

DEFAULT = "default"
DEFAULT_NAMES = (DEFAULT, "placement_default")
"""How the function of the default placement may end: Spanner's documentation does not say."""


def use_placements(
    stream: QueryStream, watched: WatchedStream, placements: Sequence[str]
) -> WatchedStream:
    """The stream, read by the functions of some placements; without any as it is. One call.

    Raises StreamNotFoundError for a placement that the stream has no function of.
    """
    if not placements:
        return watched
    prefix = stream.sql.name_read_function("", watched.keys_move)
    statement = list_read_functions(f"{prefix}{watched.name}_")
    rows = collect_rows(stream.query(statement, None, with_stats=False), 1)
    names = [parse_cell(value).text.removeprefix(prefix) for values in rows for value in values]
    functions = tuple(
        choose_function(stream.database_name, watched.name, placement, names, prefix)
        for placement in dict.fromkeys(placements)
    )
    return replace(watched, placement_functions=functions)


def choose_function(
    database: str, stream: str, placement: str, names: Sequence[str], prefix: str = "READ_"
) -> str:
    """The function of a placement, without ``READ_``. Raises StreamNotFoundError."""
    is_default = placement.casefold() == DEFAULT
    for ending in DEFAULT_NAMES if is_default else (placement,):
        for name in names:
            if name.casefold() == f"{stream}_{ending}".casefold():
                return name
    known = ", ".join(sorted(prefix + name for name in names)) or "none"
    raise StreamNotFoundError(
        f"{database} has no function of change stream {stream} for placement {placement}"
        f" ({prefix}{stream}_{placement}); of its placements it has: {known}. Name existing"
        " placements, of a stream that was created with per_placement_tvf = true"
    )
