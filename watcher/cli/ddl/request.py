"""What a user wants to be watchable and how: flags and a TOML file as one validated request."""

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
from watcher.config import explained
from watcher.database import DatabaseAddress, connect
from watcher.watch_config import read_toml

Tables = Annotated[
    list[str] | None,
    typer.Option("--table", "-t", help="A table, or a glob such as 'Sing*'; may be repeated."),
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
        help="automatic (default): Spanner writes the timestamp by itself and clearing sets it to"
        " NULL, the applications change nothing. processed: clearing sets Processed to TRUE and"
        " keeps the timestamp, the applications' UPDATEs reset Processed. manual: the applications"
        " write an existing timestamp column. change-set: for tables without a timestamp, the"
        " applications write a change-set id. change-stream: Spanner's own, with deletes."
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
    typer.Option("--storing", help="Keep these columns in the index too, to save the join back."),
]
StoredOption = Annotated[
    bool,
    typer.Option(
        "--stored", help="Store the shard in the table as well; writes every row of it once."
    ),
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
    """Which tables, and the options of each. Raises PlanError for what is wrong."""

    def __init__(
        self,
        tables: list[str] | None,
        exclude: list[str] | None,
        config: Path | None,
        flags: dict[str, object],
    ) -> None:
        given = read_toml(config) if config is not None else {}
        chosen = {
            name: value
            for name, value in flags.items()
            if value is not None and value is not False and value != []
        }
        try:
            self._file = WatchFile.model_validate(given)
            self._check()
            self._flags = chosen
            WatchOptions.model_validate(chosen)
        except ValidationError as error:
            raise PlanError(explained(error)) from error
        if tables is None and config is None:
            raise PlanError("name tables with --table, or a file with --config")
        self.include = tuple(tables or self._file.tables)
        self.exclude = tuple(exclude or self._file.exclude)

    def _check(self) -> None:
        """Every section of the file at once, before anything is planned."""
        for table in ("", *self._file.table):
            self._file.options_for(table)

    def options(self, table: str) -> WatchOptions:
        """The options of one table: the file's, with the flags before them."""
        return self._file.options_for(table).model_copy(
            update=WatchOptions.model_validate(self._flags).model_dump(include=set(self._flags))
        )


def load_schema(
    database: str | None, schema: Path | None, dialect: Dialect | None = None
) -> tuple[Schema, Database | None]:
    """The schema of a database or of a file; exactly one must be named. Raises PlanError.

    ``dialect`` is that of the file; a database knows its own.
    """
    if (database is None) == (schema is None):
        raise PlanError("name either --database or --schema")
    if schema is not None:
        if not schema.is_file():
            raise PlanError(f"there is no file {schema}")
        return parse_schema(schema.read_text(), dialect or Dialect.GOOGLESQL), None
    client = connect(DatabaseAddress.parse(database or ""))
    return read_schema(client), client
