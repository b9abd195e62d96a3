"""Files of a replica that say what is in it: JSON, each with the number of its format."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from pyarrow.fs import FileSystem

from watcher.model.errors import CheckpointError
from watcher.replica.stores.stored_files import DAMAGE, read_whole

FORMAT = 1
FORMAT_OF_MODES = 2
"""Of cuts whose copies keep more than the rows that are there: earlier releases refuse them."""
FORMAT_OF_VIEWS = 3
"""Of cuts with a copy that does not show every row of its table as it is: likewise."""
FORMATS = (FORMAT, FORMAT_OF_MODES, FORMAT_OF_VIEWS)
UNPROVED = ", or remove it, and let 'spanner-watcher verify' prove the copies"
"""What can be done with a file without which less is known of the copies."""
Value = TypeVar("Value")


def read_stored(
    files: FileSystem, path: str, build: Callable[[dict[str, Any]], Value], remedy: str = ""
) -> Value:
    """What ``build`` makes of a file. ``remedy``: what else than to restore it can be done with one
    that is damaged. Raises FileNotFoundError where there is none, CheckpointError for what no
    release up to this one writes."""
    return parse_stored(read_whole(files, path), path, build, remedy)


def parse_stored(
    text: str, path: str, build: Callable[[dict[str, Any]], Value], remedy: str = ""
) -> Value:
    """As ``read_stored``, of a file's text."""
    try:
        stored = json.loads(text)
        if (found := stored.get("format")) in FORMATS:
            return build(stored)
    except DAMAGE as error:
        raise CheckpointError(
            f"{path} is damaged ({type(error).__name__}: {error}): restore it from a backup{remedy}"
        ) from error
    raise CheckpointError(
        f"{path} has format {found}, and this release reads formats {FORMATS[0]} to {FORMATS[-1]}:"
        " install the release that wrote it, or a later one"
    )
