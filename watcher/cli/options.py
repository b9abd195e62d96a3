"""Options that several commands share. Importing them loads nothing that a command needs to run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spanner_schema.model.schema import Dialect
from spanner_schema.model.strategies import ShardKind
from watcher.spanner.address import DatabaseAddress

POSITIONS_TABLE = "SpannerWatcherPositions"
"""The default of ``watcher.consumers.positions``, repeated because loading that takes a second."""

_DATABASE = typer.Option(
    "--database",
    "-d",
    metavar="ADDRESS",
    help="The database: spanner://projects/P/instances/I/databases/D"
    " (for an emulator, set SPANNER_EMULATOR_HOST).",
)
DatabaseOption = Annotated[str, _DATABASE]
OptionalDatabaseOption = Annotated[str | None, _DATABASE]
NewDatabaseOption = Annotated[
    DatabaseAddress | None,
    typer.Option(
        "--database",
        "-d",
        metavar="ADDRESS",
        parser=DatabaseAddress.parse_for_writes,
        help="Run in this database (spanner://projects/P/instances/I/databases/D) of a Spanner that"
        " is there, which must not exist: it is created for the run and dropped at the end. Without"
        " it, an embedded Spanner.",
    ),
]
TableOption = Annotated[str, typer.Option("--table", "-t", metavar="TABLE", help="The table.")]
TablesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--table", "-t", metavar="TABLE", help="A table, or a glob such as 'Sing*'; repeatable."
    ),
]
ExcludeOption = Annotated[
    list[str] | None,
    typer.Option("--exclude", metavar="TABLE", help="A table or a glob to leave out; repeatable."),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="A TOML file with settings; flags override the file.",
    ),
]
ConsumerOption = Annotated[
    str | None, typer.Option("--consumer", metavar="NAME", help="The consumer's name.")
]
StreamOption = Annotated[
    str | None,
    typer.Option(
        "--stream",
        metavar="NAME",
        help="Read this change stream instead of polling: deletes, old values and every version.",
    ),
]
ShardOption = Annotated[
    ShardKind | None,
    typer.Option(
        "--shard",
        metavar="KIND",
        help="What the shard of the tables is, which are then named, not globs: computed, or time,"
        " fixed, not-null for a column that applications write (--shard-column); none.",
    ),
]
ShardColumnOption = Annotated[
    str | None, typer.Option("--shard-column", metavar="COLUMN", help="The column of the shard.")
]
ShardValueOption = Annotated[
    list[str] | None,
    typer.Option(
        "--shard-value", metavar="VALUE", help="A value of the shard, with fixed; repeatable."
    ),
]
WhereOption = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="TABLE=CONDITION",
        help="Deliver only the rows of TABLE that satisfy a condition, such as"
        " \"Singers=City = 'Bern' AND Age >= 18\"; Spanner evaluates it. Repeatable.",
    ),
]
ColumnsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        metavar="TABLE=COLUMN,COLUMN",
        help="Read only these columns of TABLE, and its key; repeatable.",
    ),
]
MaskOption = Annotated[
    list[str] | None,
    typer.Option(
        "--mask",
        metavar="TABLE.COLUMN=KIND",
        help="Deliver a column masked: hash (by --mask-key), redact, or null; repeatable.",
    ),
]
MaskKeyOption = Annotated[
    str | None,
    typer.Option(
        "--mask-key",
        metavar="PLACE",
        help="Where the key of hashes is: env:NAME (an environment variable) or file:PATH.",
    ),
]
PositionsTableOption = Annotated[
    str,
    typer.Option(
        "--positions-table", metavar="TABLE", help="The Spanner table that keeps positions."
    ),
]
StandbyOption = Annotated[
    bool, typer.Option("--standby", help="Wait while another instance of this consumer is alive.")
]
LogWindowsOption = Annotated[bool, typer.Option("--verbose", "-v", help="Log every window.")]
CreateFoldersOption = Annotated[
    bool,
    typer.Option(
        "--create-folders",
        help="Make all folders of the files and copies that are named; without it, those that are"
        " missing are an error, but for the last one.",
    ),
]
SchemaOption = Annotated[
    Path | None,
    typer.Option("--schema", "-s", metavar="FILE", help="A file with the DDL of the database."),
]
DialectOption = Annotated[
    Dialect | None,
    typer.Option(
        "--dialect",
        metavar="DIALECT",
        help="The dialect of the file with --schema: googlesql (the default) or postgresql. A"
        " database has its own.",
    ),
]
AcceptFailedProbeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--accept-failed-probe",
        metavar="NAME",
        help="Run although the last 'check --probe' found this assumption wrong; repeatable.",
    ),
]
ApplyOption = Annotated[
    bool, typer.Option("--apply", help="Run the statement; without this it is only shown.")
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
EveryOption = Annotated[
    str, typer.Option("--every", metavar="DURATION", help="How often to read, such as 5s.")
]
StalenessOption = Annotated[
    str,
    typer.Option(
        "--staleness",
        metavar="DURATION",
        help="How old reads may be, so that the nearest replica serves them; 0s: strong reads.",
    ),
]
CopiesOption = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="FORMAT:FOLDER",
        help="A replica: also show what 'verify --incremental' has proved of its copies.",
    ),
]
