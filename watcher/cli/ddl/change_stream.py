"""``ddl change-stream create|alter|drop``."""

from __future__ import annotations

from typing import Annotated

import typer

from ddl import change_streams
from ddl.apply import run_statements
from ddl.errors import PlanError
from ddl.render import render_step
from ddl.schema import ChangeStream, Schema
from ddl.steps import Step
from watcher.cli.common import JsonOption
from watcher.cli.ddl.request import DatabaseArgument, DialectOption, SchemaArgument, load_schema
from watcher.cli.output import CONSOLE, print_json

app = typer.Typer(
    no_args_is_help=True,
    help="Create, alter and drop change streams, checked against Spanner's limits first.",
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="The change stream's name.")]
Watch = Annotated[
    list[str] | None,
    typer.Option("--watch", "-w", help="T, 'T(a, b)', or 'T()' for the key alone; repeatable."),
]
All = Annotated[bool, typer.Option("--all", help="Watch the whole database.")]
Retention = Annotated[
    str | None, typer.Option(help="How long to keep records: 1d to 30d; Spanner's default is 7d.")
]
Capture = Annotated[
    str | None,
    typer.Option(
        "--capture", metavar="TYPE", help=f"One of {', '.join(change_streams.CAPTURE_TYPES)}."
    ),
]
Flags = Annotated[
    list[str] | None,
    typer.Option("--set", help=f"One of {', '.join(change_streams.FLAGS)}; repeatable."),
]
Apply = Annotated[
    bool, typer.Option("--apply", help="Run the statement; without this it is only shown.")
]


@app.command()
def create(
    name: Name,
    database: DatabaseArgument = None,
    schema: SchemaArgument = None,
    dialect: DialectOption = None,
    watch: Watch = None,
    everything: All = False,
    retention: Retention = None,
    capture: Capture = None,
    flags: Flags = None,
    apply: Apply = False,
    json_output: JsonOption = False,
) -> None:
    """Create a change stream."""
    loaded, _ = load_schema(database, schema, dialect)
    if everything == bool(watch):
        raise PlanError("nothing to watch: use either --all, or --watch with a table")
    options = change_streams.make_stream_options(retention, capture, flags or ())
    watches = tuple(change_streams.parse_watch(text) for text in watch or ())
    stream = ChangeStream(name, watches, everything, options)
    show_and_run(loaded, change_streams.create(loaded, stream), database, apply, json_output)


@app.command()
def alter(
    name: Name,
    database: DatabaseArgument = None,
    schema: SchemaArgument = None,
    dialect: DialectOption = None,
    watch: Watch = None,
    everything: All = False,
    retention: Retention = None,
    capture: Capture = None,
    flags: Flags = None,
    apply: Apply = False,
    json_output: JsonOption = False,
) -> None:
    """Change what a change stream watches, or its options."""
    loaded, _ = load_schema(database, schema, dialect)
    options = change_streams.make_stream_options(retention, capture, flags or ())
    watches = tuple(change_streams.parse_watch(text) for text in watch or ())
    changes = frozenset(
        ({"watches"} if watches or everything else set()) | ({"options"} if options else set())
    )
    if not changes:
        raise PlanError("nothing to change: use --watch, --all, or an option")
    stream = ChangeStream(name, watches, everything, options)
    step = change_streams.alter(loaded, stream, changes)
    show_and_run(loaded, step, database, apply, json_output)


@app.command()
def drop(
    name: Name,
    database: DatabaseArgument = None,
    schema: SchemaArgument = None,
    dialect: DialectOption = None,
    apply: Apply = False,
    json_output: JsonOption = False,
) -> None:
    """Drop a change stream and all its records."""
    loaded, _ = load_schema(database, schema, dialect)
    show_and_run(loaded, change_streams.drop(loaded, name), database, apply, json_output)


def show_and_run(
    schema: Schema, step: Step, database: str | None, apply: bool, json_output: bool
) -> None:
    """Shows a statement, and runs it if ``apply`` is set."""
    statement = render_step(step, schema.dialect)
    if json_output:
        print_json({"statements": [statement], "applied": apply})
    else:
        CONSOLE.print(statement, soft_wrap=True)
    if not apply:
        return
    if database is None:
        raise PlanError("--apply needs a database: name it with --database")
    _, client = load_schema(database, None)
    if client is not None:
        run_statements(client, [statement])
