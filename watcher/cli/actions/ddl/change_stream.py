"""Shows the statements that create, alter and drop a change stream, and runs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ddl import change_streams
from ddl.apply import run_statements
from ddl.errors import PlanError
from ddl.render import render_step
from ddl.schema import ChangeStream, Dialect, Schema
from ddl.steps import Step
from watcher.cli.actions.ddl.request import load_schema
from watcher.cli.output import CONSOLE, print_json


@dataclass(frozen=True, slots=True)
class StreamTarget:
    """The schema, of a database or a file, and whether to change the database."""

    database: str | None
    schema: Path | None
    dialect: Dialect | None
    apply: bool
    json_output: bool

    def load(self) -> Schema:
        """The schema."""
        schema, _ = load_schema(self.database, self.schema, self.dialect)
        return schema


@dataclass(frozen=True, slots=True)
class StreamChoices:
    """What a stream watches, and its options, as the flags give them."""

    watch: Sequence[str] | None
    everything: bool
    retention: str | None
    capture: str | None
    flags: Sequence[str] | None

    def make_stream(self, name: str) -> ChangeStream:
        """The stream. Raises PlanError for invalid values."""
        options = change_streams.make_stream_options(self.retention, self.capture, self.flags or ())
        watches = tuple(change_streams.parse_watch(text) for text in self.watch or ())
        return ChangeStream(name, watches, self.everything, options)


def create(name: str, choices: StreamChoices, target: StreamTarget) -> None:
    """Shows, or runs, CREATE CHANGE STREAM."""
    schema = target.load()
    if choices.everything == bool(choices.watch):
        raise PlanError("nothing to watch: use either --all, or --watch with a table")
    step = change_streams.create(schema, choices.make_stream(name))
    show_and_run(schema, [step], target)


def alter(name: str, choices: StreamChoices, target: StreamTarget) -> None:
    """Shows, or runs, ALTER CHANGE STREAM."""
    schema = target.load()
    stream = choices.make_stream(name)
    changes = set[str]()
    if choices.watch or choices.everything:
        changes.add("watches")
    if stream.options:
        changes.add("options")
    if not changes:
        raise PlanError("nothing to change: use --watch, --all, or an option")
    show_and_run(schema, change_streams.alter(schema, stream, frozenset(changes)), target)


def drop(name: str, target: StreamTarget) -> None:
    """Shows, or runs, DROP CHANGE STREAM."""
    schema = target.load()
    show_and_run(schema, [change_streams.drop(schema, name)], target)


def show_and_run(schema: Schema, steps: Sequence[Step], target: StreamTarget) -> None:
    """Shows statements, and runs them if ``apply`` is set."""
    statements = [render_step(step, schema.dialect) for step in steps]
    if target.json_output:
        print_json({"statements": statements, "applied": target.apply})
    else:
        for statement in statements:
            CONSOLE.print(statement)
    if not target.apply:
        return
    if target.database is None:
        raise PlanError("--apply needs a database: name it with --database")
    _, client = load_schema(target.database, None)
    if client is not None:
        run_statements(client, statements)
