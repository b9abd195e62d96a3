"""``ddl change-stream``: the statements that create, alter and drop a change stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from ddl.rules.change_streams import CAPTURE_TYPES, FLAGS
from spanner_schema.model.schema import ChangeStream, Schema
from watcher.cli.options import (
    ApplyOption,
    DialectOption,
    JsonOption,
    OptionalDatabaseOption,
    SchemaOption,
)
from watcher.cli.output import CONSOLE, print_json
from watcher.process.terminal.commands import CommandApp
from watcher.process.terminal.loading import to_run

if to_run(__name__):
    from ddl.migration.apply import run_statements
    from ddl.rules import change_streams
    from spanner_schema.model.errors import PlanError
    from spanner_schema.model.steps import Step
    from spanner_schema.syntax.render import render_step
    from watcher.cli.ddl.request import load_schema

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
    loaded, _ = load_schema(database, schema, dialect)
    if everything == bool(watch):
        raise PlanError("nothing to watch: use either --all, or --watch with a table")
    stream = make_stream(name, watch, everything, retention, capture, flags)
    step = change_streams.create(loaded, stream)
    show_and_run(loaded, [step], database, apply, json_output)


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
    loaded, _ = load_schema(database, schema, dialect)
    stream = make_stream(name, watch, everything, retention, capture, flags)
    changes = set[str]()
    if watch or everything:
        changes.add("watches")
    if stream.options:
        changes.add("options")
    if not changes:
        raise PlanError("nothing to change: use --watch, --all, or an option")
    steps = change_streams.alter(loaded, stream, frozenset(changes))
    show_and_run(loaded, steps, database, apply, json_output)


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
    loaded, _ = load_schema(database, schema, dialect)
    show_and_run(loaded, [change_streams.drop(loaded, name)], database, apply, json_output)


def make_stream(
    name: str,
    watch: Sequence[str] | None,
    everything: bool,
    retention: str | None,
    capture: str | None,
    flags: Sequence[str] | None,
) -> ChangeStream:
    """The stream that the options describe. Raises PlanError for invalid values."""
    options = change_streams.make_stream_options(retention, capture, flags or ())
    watches = tuple(change_streams.parse_watch(text) for text in watch or ())
    return ChangeStream(name, watches, everything, options)


def show_and_run(
    schema: Schema, steps: Sequence[Step], database: str | None, apply: bool, json_output: bool
) -> None:
    """Shows statements, and runs them if ``apply`` is set."""
    statements = [render_step(step, schema.dialect) for step in steps]
    if json_output:
        print_json({"statements": statements, "applied": apply})
    else:
        for statement in statements:
            CONSOLE.print(statement)
    if not apply:
        return
    if database is None:
        raise PlanError("--apply needs a database: name it with --database")
    _, client = load_schema(database, None)
    if client is not None:
        run_statements(client, statements)
