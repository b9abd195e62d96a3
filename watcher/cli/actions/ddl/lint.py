"""Checks a schema, and the even use of its shards, against the rules of the linter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import typer
from google.cloud.spanner_v1.database import Database

from ddl.lint import LintContext, lint_schema, list_poll_indexes
from ddl.render import quote_column, render_source
from ddl.schema import Dialect, Schema
from watcher.cli.actions.ddl.request import load_schema
from watcher.cli.output import CONSOLE, print_json
from watcher.settings.fields import duration_seconds
from watcher.terminal.console import label

SAMPLE_ROWS = 10_000


def lint(
    database: str | None,
    schema: Path | None,
    dialect: Dialect | None,
    nodes: int,
    longest_replay: str,
    queries: Sequence[str],
    json_output: bool,
) -> None:
    """Prints the findings; exits with 1 if there are any."""
    loaded, client = load_schema(database, schema, dialect)
    context = LintContext(
        nodes=nodes,
        longest_replay=duration_seconds(longest_replay),
        shard_rows=count_sampled_rows(client, loaded) if client is not None else {},
        queries=tuple(queries),
    )
    findings = lint_schema(loaded, context)
    if json_output:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            CONSOLE.print(label(finding.rule, "bold", f"  {finding.place}"))
            CONSOLE.print(f"    why:  {finding.why}")
            CONSOLE.print(f"    fix:  {finding.fix}")
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
