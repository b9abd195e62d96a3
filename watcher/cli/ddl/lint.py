"""``ddl lint``."""

from __future__ import annotations

from typing import Annotated

import typer

from watcher.cli import actions
from watcher.cli.options import (
    DialectOption,
    JsonOption,
    OptionalDatabaseOption,
    SchemaOption,
)


def command(
    database: OptionalDatabaseOption = None,
    schema: SchemaOption = None,
    dialect: DialectOption = None,
    nodes: Annotated[int, typer.Option(min=1, metavar="NUMBER", help="Nodes of the instance.")] = 1,
    longest_replay: Annotated[
        str,
        typer.Option(
            metavar="DURATION", help="How long after its end a window may be replayed, such as 6h."
        ),
    ] = "0s",
    query: Annotated[
        list[str] | None,
        typer.Option(metavar="QUERY", help="The text of a poll query to check; repeatable."),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Find what makes watching slow, wrong or expensive.

    Shows the rule, the place, why, and the fix. With a database, measures the shards on a sample of
    rows. Exits with 1 if there are findings.
    """
    actions.ddl.lint.lint(
        database, schema, dialect, nodes, longest_replay, query or (), json_output
    )
