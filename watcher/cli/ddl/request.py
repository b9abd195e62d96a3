"""Which tables to make watchable, and how: flags and a TOML file as one validated request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from google.cloud.spanner_v1.database import Database
from pydantic import ValidationError

from ddl.migration.apply import read_schema
from ddl.rules.evolve import parse_schema
from spanner_schema.model.errors import PlanError
from spanner_schema.model.options import WatchFile, WatchOptions
from spanner_schema.model.schema import Dialect, Schema
from watcher.process.text_files import read_text_file, read_toml
from watcher.settings.fields import describe_validation_error
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import connect


class WatchRequest:
    """Which tables to watch, and the options of each. Raises PlanError for invalid values.

    ``strict`` says that none is left out."""

    def __init__(
        self,
        tables: Sequence[str] | None,
        exclude: Sequence[str] | None,
        config: Path | None,
        flags: Mapping[str, object],
        strict: bool = False,
    ) -> None:
        self.strict = strict
        settings = read_toml(config) if config is not None else {}
        set_flags = {
            name: value
            for name, value in flags.items()
            if value is not None and value is not False and value != []
        }
        try:
            self._file = WatchFile.model_validate(settings)
            self._check_sections()
            self._flags = set_flags
            WatchOptions.model_validate(set_flags)
        except ValidationError as error:
            raise PlanError(describe_validation_error(error)) from error
        if tables is None and config is None:
            raise PlanError("no tables: name them with --table, or in a file with --config")
        self.include = tuple(tables or self._file.tables)
        self.exclude = tuple(exclude or self._file.exclude)

    def _check_sections(self) -> None:
        """Checks every section of the file before anything is planned."""
        for table in ("", *self._file.table):
            self._file.options_for(table)

    def options(self, table: str) -> WatchOptions:
        """The options of one table: those of the file, which flags override."""
        return self._file.options_for(table).model_copy(
            update=WatchOptions.model_validate(self._flags).model_dump(include=set(self._flags))
        )


def load_schema(
    database: str | None, schema: Path | None, dialect: Dialect | None = None
) -> tuple[Schema, Database | None]:
    """Loads the schema of a database or a file, exactly one of them; with the client of a database.

    ``dialect`` is that of the file; a database has its own. Raises PlanError.
    """
    if (database is None) == (schema is None):
        raise PlanError("no schema: use either --database or --schema")
    if dialect is not None and schema is None:
        raise PlanError("--dialect is that of a file with --schema: a database has its own")
    if schema is not None:
        return parse_schema(read_text_file(schema), dialect or Dialect.GOOGLESQL), None
    client = connect(DatabaseAddress.parse_for_writes(database or ""))
    return read_schema(client), client
