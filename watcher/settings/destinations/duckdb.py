"""Tables of a file of DuckDB as a destination."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from watcher.settings.destinations.destination import TABLE_FIELD
from watcher.settings.destinations.tables import (
    TARGET_PARAMETERS,
    TableDestination,
    TableOptions,
    read_parameters,
    read_target,
)
from watcher.settings.secret_values import Secret

NO_FILES = (":memory:", "md:", "motherduck:")
"""What DuckDB's library takes for something else."""


class DuckDbOptions(TableOptions):
    """How to write to DuckDB."""

    properties: Mapping[str, Secret] = {}
    """Settings of DuckDB, such as ``memory_limit`` and ``threads``. No value is ever shown;
    ``{ file = "PATH" }`` and ``{ env = "NAME" }`` are read from there."""


@dataclass(frozen=True, slots=True)
class DuckDbDestination(TableDestination):
    """A file of DuckDB, of which its writer is the only process that has it open."""

    scheme = "duckdb"
    service = "DuckDB"
    messaging_system = "duckdb"
    options = DuckDbOptions

    path: Path
    schema: str = "main"
    topic: str = TABLE_FIELD

    def __str__(self) -> str:
        return f"duckdb:{self.path}"

    @classmethod
    def read(cls, rest: str) -> Self | None:
        """As ``Destination.read``."""
        path, _, query = rest.partition("?")
        if path.startswith("///"):
            path = path[2:]
        if not path or path.startswith(("//", *NO_FILES)) or "\0" in path or path.endswith("/"):
            return None
        schema, table = read_target(read_parameters(query, TARGET_PARAMETERS), "main")
        return cls(Path(path), schema, table)
