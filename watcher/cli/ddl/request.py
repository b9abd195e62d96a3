"""Which tables to make watchable, and how: flags and a TOML file as one validated request."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from google.cloud.spanner_v1.database import Database
from pydantic import ValidationError

from ddl.apply import read_schema
from ddl.errors import PlanError
from ddl.options import Modulo, Strategy, WatchFile, WatchOptions
from ddl.parse import parse_schema
from ddl.schema import Dialect, Schema
from watcher.settings.fields import explained
from watcher.settings.watcher import read_toml
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import connect

Tables = Annotated[
    list[str] | None,
    typer.Option("--table", "-t", help="A table, or a glob such as 'Sing*'; repeatable."),
]
Exclude = Annotated[
    list[str] | None, typer.Option("--exclude", help="A table or a glob to leave out; repeatable.")
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", help="A TOML file: tables, exclude, [defaults], [table.NAME]; flags win."
    ),
]
StrategyOption = Annotated[
    Strategy | None,
    typer.Option(
        help="automatic (default): Spanner writes the timestamp, clearing sets it to NULL; no"
        " application changes. processed: clearing sets Processed to TRUE and keeps the timestamp;"
        " the applications' UPDATEs reset Processed. manual: the applications write an existing"
        " timestamp column. change-set: for tables without a timestamp; the applications write a"
        " change-set id. change-stream: a change stream of Spanner, with deletes."
    ),
]
ShardsOption = Annotated[
    int | None,
    typer.Option("--shards", help="Distinct values of the computed shard (16); see 'ddl advise'."),
]
ModuloOption = Annotated[
    Modulo | None,
    typer.Option(help="positive: exactly N shards. signed: MOD keeps the sign, 2N - 1 shards."),
]
KeyOption = Annotated[
    list[str] | None,
    typer.Option("--shard-key", help="Hash these columns; default: the primary key."),
]
TimestampOption = Annotated[
    str | None,
    typer.Option("--timestamp-column", help="Name of the commit-timestamp column (LastModified)."),
]
ShardColumnOption = Annotated[
    str | None, typer.Option("--shard-column", help="Name of the computed shard column (ShardId).")
]
ProcessedOption = Annotated[
    str | None,
    typer.Option("--processed-column", help="Name of the Processed column (Processed)."),
]
IndexOption = Annotated[str | None, typer.Option("--index", help="Name of the index.")]
StoringOption = Annotated[
    list[str] | None,
    typer.Option(
        "--storing", help="Store these columns in the index, to avoid a join with the table."
    ),
]
StoredOption = Annotated[
    bool,
    typer.Option("--stored", help="Store the shard in the table, too; writes every row once."),
]
DatabaseArgument = Annotated[
    str | None,
    typer.Option(
        "--database",
        "-d",
        metavar="ADDRESS",
        help="spanner://projects/PROJECT/instances/INSTANCE/databases/DATABASE",
    ),
]
SchemaArgument = Annotated[
    Path | None, typer.Option("--schema", "-s", help="A file with the DDL of the database.")
]


DialectOption = Annotated[
    Dialect | None,
    typer.Option("--dialect", help="The dialect of the file with --schema; googlesql by default."),
]


class WatchRequest:
    """Which tables to watch, and the options of each. Raises PlanError for invalid values."""

    def __init__(
        self,
        tables: list[str] | None,
        exclude: list[str] | None,
        config: Path | None,
        flags: dict[str, object],
    ) -> None:
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
            raise PlanError(explained(error)) from error
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
    if schema is not None:
        if not schema.is_file():
            raise PlanError(f"file {schema} does not exist: name a file with DDL statements")
        return parse_schema(schema.read_text(), dialect or Dialect.GOOGLESQL), None
    client = connect(DatabaseAddress.parse(database or ""))
    return read_schema(client), client
