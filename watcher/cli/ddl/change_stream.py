"""``ddl change-stream create|alter|drop``."""

from __future__ import annotations

from typing import Annotated

import typer

from ddl.change_streams import CAPTURE_TYPES, FLAGS
from watcher.cli import actions
from watcher.cli.options import (
    ApplyOption,
    DialectOption,
    JsonOption,
    OptionalDatabaseOption,
    SchemaOption,
)
from watcher.terminal.commands import CommandApp

app = CommandApp(
    help="Create, alter and drop change streams.\n\nChecks them against Spanner's limits first.",
)
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The change stream's name.")]
WatchOption = Annotated[
    list[str] | None,
    typer.Option(
        "--watch",
        "-w",
        metavar="TABLE",
        help="T, 'T(a, b)', or 'T()' for the key alone; repeatable.",
    ),
]
AllOption = Annotated[bool, typer.Option("--all", help="Watch the whole database.")]
RetentionOption = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION", help="How long to keep records: 1d to 30d; Spanner's default is 7d."
    ),
]
CaptureOption = Annotated[
    str | None,
    typer.Option("--capture", metavar="TYPE", help=f"One of {', '.join(CAPTURE_TYPES)}."),
]
FlagsOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="OPTION", help=f"One of {', '.join(FLAGS)}; repeatable."),
]


@app.command()
def create(
    name: NameArgument,
    database: OptionalDatabaseOption = None,
    schema: SchemaOption = None,
    dialect: DialectOption = None,
    watch: WatchOption = None,
    everything: AllOption = False,
    retention: RetentionOption = None,
    capture: CaptureOption = None,
    flags: FlagsOption = None,
    apply: ApplyOption = False,
    json_output: JsonOption = False,
) -> None:
    """Create a change stream."""
    target = actions.ddl.change_stream.StreamTarget(database, schema, dialect, apply, json_output)
    choices = actions.ddl.change_stream.StreamChoices(watch, everything, retention, capture, flags)
    actions.ddl.change_stream.create(name, choices, target)


@app.command()
def alter(
    name: NameArgument,
    database: OptionalDatabaseOption = None,
    schema: SchemaOption = None,
    dialect: DialectOption = None,
    watch: WatchOption = None,
    everything: AllOption = False,
    retention: RetentionOption = None,
    capture: CaptureOption = None,
    flags: FlagsOption = None,
    apply: ApplyOption = False,
    json_output: JsonOption = False,
) -> None:
    """Change what a change stream watches, or its options."""
    target = actions.ddl.change_stream.StreamTarget(database, schema, dialect, apply, json_output)
    choices = actions.ddl.change_stream.StreamChoices(watch, everything, retention, capture, flags)
    actions.ddl.change_stream.alter(name, choices, target)


@app.command()
def drop(
    name: NameArgument,
    database: OptionalDatabaseOption = None,
    schema: SchemaOption = None,
    dialect: DialectOption = None,
    apply: ApplyOption = False,
    json_output: JsonOption = False,
) -> None:
    """Drop a change stream and all its records."""
    target = actions.ddl.change_stream.StreamTarget(database, schema, dialect, apply, json_output)
    actions.ddl.change_stream.drop(name, target)
