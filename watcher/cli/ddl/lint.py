"""``ddl lint``: checks a schema, and the even use of its shards, against the linter's rules."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from spanner_schema.model.schema import Schema
from watcher.cli.options import DialectOption, JsonOption, OptionalDatabaseOption, SchemaOption
from watcher.cli.output import CONSOLE, print_json
from watcher.process.terminal.console import label
from watcher.process.terminal.loading import to_run

if to_run(__name__):
    from google.cloud.spanner_v1.database import Database

    from ddl.tracking.lint import LintContext, lint_schema, list_poll_indexes
    from spanner_schema.syntax.render import quote_column, render_source
    from watcher.cli.ddl.request import load_schema
    from watcher.settings.fields import duration_seconds

SAMPLE_ROWS = 10_000


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

    Shows the rule, the place, why, and the fix, or how many tables polling can watch. With a
    database, measures the shards on a sample of rows. Exits with 1 if there are findings.
    """
    loaded, client = load_schema(database, schema, dialect)
    context = LintContext(
        nodes=nodes,
        longest_replay=duration_seconds(longest_replay),
        shard_rows=count_sampled_rows(client, loaded) if client is not None else {},
        queries=tuple(query or ()),
    )
    findings = lint_schema(loaded, context)
    if json_output:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            CONSOLE.print(label(finding.rule, "bold", f"  {finding.place}"))
            CONSOLE.print(f"    why:  {finding.why}")
            CONSOLE.print(f"    fix:  {finding.fix}")
        if not findings:
            watched = {table.name for table, *_ in list_poll_indexes(loaded)}
            count = f"{len(watched)} of {len(loaded.tables)}"
            CONSOLE.print(f"no findings: polling can watch {count} tables")
    if findings:
        raise typer.Exit(1)


def count_sampled_rows(client: Database, schema: Schema) -> dict[str, dict[int, int]]:
    """Counts rows by shard in a sample of each watched table."""
    counts: dict[str, dict[int, int]] = {}
    for table, _, shard, _ in list_poll_indexes(schema):
        column = quote_column(shard.name, schema.dialect)
        source = render_source(table.name, [shard.name], schema.dialect)
        query = (
            f"SELECT s, COUNT(*) FROM (SELECT {column} AS s FROM {source} LIMIT {SAMPLE_ROWS})"  # noqa: S608
            " AS sample WHERE s IS NOT NULL GROUP BY s"
        )
        with client.snapshot() as snapshot:
            counts[table.name] = {row[0]: row[1] for row in snapshot.execute_sql(query)}
    return counts
