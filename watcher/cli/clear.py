"""``spanner-watcher clear``: clears the index of a table, or shows what that would cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Annotated, Literal

import typer

from spanner_schema.model.strategies import ShardKind
from watcher.cli.logs import configure_logging
from watcher.cli.options import (
    POSITIONS_TABLE,
    DatabaseOption,
    DryRunOption,
    JsonOption,
    PositionsTableOption,
    ShardColumnOption,
    ShardOption,
    TableOption,
)
from watcher.cli.output import CONSOLE, print_json
from watcher.process.terminal.loading import to_run

if to_run(__name__):
    from watcher.consumers.audit import DONE, Audit
    from watcher.consumers.clearing import Cleared, Clearing, Explanation, Method
    from watcher.consumers.positions import SpannerPositions
    from watcher.runners.schedule import Schedule
    from watcher.runners.signals import stop_on_signals
    from watcher.settings.fields import duration_seconds
    from watcher.settings.table_specs import check_table_spec
    from watcher.settings.watch_config import GRACE_SECONDS
    from watcher.spanner.address import DatabaseAddress
    from watcher.spanner.database import connect
    from watcher.spanner.timestamps import format_timestamp
    from watcher.tables.discovery import find_table_to_clear, read_schema
    from watcher.tables.values import TableSpec

MethodName = Literal["partitioned", "index", "auto"]
"""The values of ``watcher.consumers.clearing.Method``, repeated because loading that takes a
second."""


def command(
    database: DatabaseOption,
    table: TableOption,
    margin: Annotated[
        str,
        typer.Option(
            metavar="DURATION", help="Keep this distance from the slowest consumer, such as 10m."
        ),
    ] = "0s",
    dry_run: DryRunOption = False,
    method: Annotated[
        MethodName,
        typer.Option(
            metavar="METHOD",
            help="partitioned: scan the whole table in one statement. index: clear the rows that"
            " the index lists, in ordinary transactions. auto: whichever is cheaper.",
        ),
    ] = "partitioned",
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Show what each method would read and write; change nothing."
        ),
    ] = False,
    every: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Clear repeatedly, with this pause, such as 10m."),
    ] = None,
    shard: ShardOption = None,
    shard_column: ShardColumnOption = None,
    positions_table: PositionsTableOption = POSITIONS_TABLE,
    json_output: JsonOption = False,
) -> None:
    """Remove delivered rows from the index that is polled.

    The rows stay in the table. Clears only what every consumer has delivered, and not rows that
    change meanwhile. Sets the timestamp to NULL (strategy automatic) or Processed to TRUE (strategy
    processed), or deletes change sets (strategy change-set; the table is that of the rows or of the
    change sets). Refuses to erase a timestamp that applications write, unless 'ddl apply
    --take-over' let it. Partitioned DML scans the whole table, so clear rarely; use --method index
    for few rows of a large table.
    """
    request = ClearRequest(
        database=database,
        table=table,
        margin=margin,
        method=method,
        dry_run=dry_run,
        shard=shard,
        shard_column=shard_column,
        positions_table=positions_table,
        json_output=json_output,
    )
    if explain:
        explain_methods(request)
    else:
        clear_index(request, every)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearRequest:
    """What to clear and how. ``margin`` is a duration, such as 10m."""

    database: str
    table: str
    margin: str
    method: str
    dry_run: bool
    positions_table: str
    json_output: bool
    shard: ShardKind | None = None
    shard_column: str | None = None


def open_clearing(request: ClearRequest) -> tuple[str, Clearing, SpannerPositions]:
    """Connects to the database and looks up the table, whose name in the schema comes first."""
    margin_seconds = duration_seconds(request.margin)
    client = connect(DatabaseAddress.parse_for_writes(request.database))
    told = request.shard is not None or request.shard_column is not None
    spec = TableSpec(shard=request.shard, shard_column=request.shard_column) if told else None
    if spec is not None and spec.shard == "fixed":
        spec = replace(spec, shard="not-null")  # clearing asks for no list of values
    if spec is not None:
        check_table_spec(spec, "--shard")
    table = find_table_to_clear(read_schema(client), request.table, client.name, spec)
    positions = SpannerPositions(client, request.positions_table)
    method = Method(request.method)
    return table.name, Clearing(client, table, positions, margin_seconds, method), positions


def clear_index(request: ClearRequest, every: str | None) -> None:
    """Clears once, or again after each pause of ``every`` until a signal stops it."""
    configure_logging("logfmt", verbose=False)
    pause = duration_seconds(every) if every is not None else None
    table, clearing, positions = open_clearing(request)
    if not request.dry_run:
        positions.create()

    audit = Audit(positions.database, request.positions_table)

    def clear_once() -> None:
        if request.dry_run:
            print_result(table, request, clearing.count())
            return
        with audit.record("clear", "", table=table, method=request.method) as outcome:
            result = clearing.clear()
            outcome.result = f"{DONE}: {result.rows} rows"
        print_result(table, request, result)

    if pause is None:
        clear_once()
        return
    schedule = Schedule()
    stop_on_signals(schedule.stop, GRACE_SECONDS)
    schedule.every(pause, f"clear {table}", clear_once)
    schedule.start()
    schedule.wait()


def print_result(table: str, request: ClearRequest, result: Cleared) -> None:
    """Prints how many rows were cleared, or would be."""
    limit = format_timestamp(result.safe)
    if request.json_output:
        print_json(
            {
                "table": table,
                "dry_run": request.dry_run,
                "rows": result.rows,
                "up_to": limit,
                "slowest_consumer": result.slowest_consumer,
            }
        )
        return
    verb = "would be cleared" if request.dry_run else "cleared"
    CONSOLE.print(
        f"{table}: {result.rows:,} rows {verb} from the index, up to {limit}"
        f" (slowest consumer: '{result.slowest_consumer}')"
    )


def explain_methods(request: ClearRequest) -> None:
    """Prints what each method would read and write."""
    _, clearing, _ = open_clearing(request)
    explanation = clearing.explain()
    if request.json_output:
        print_json(asdict(explanation) | {"safe": format_timestamp(explanation.safe)})
    else:
        print_explanation(explanation)


def print_explanation(explanation: Explanation) -> None:
    """Prints the costs of both methods in words."""
    partitioned, by_index = explanation.partitioned, explanation.by_index
    more = " or more" if explanation.at_least else ""
    CONSOLE.print(
        f"{explanation.table}: {partitioned.rows_written:,} rows can be cleared, up to"
        f" {format_timestamp(explanation.safe)}"
        f" (slowest consumer: '{explanation.slowest_consumer}')\n"
        f"partitioned: scans {partitioned.table_rows_read:,}{more} rows of the table, writes"
        f" {partitioned.rows_written:,}, in one transaction for each split"
    )
    if by_index is None:
        CONSOLE.print("index: not possible, the table has no index to read")
    else:
        CONSOLE.print(
            f"index: reads {by_index.index_entries_read:,} entries of the index and"
            f" {by_index.table_rows_read:,} rows of the table by their keys, writes"
            f" {by_index.rows_written:,}, in {by_index.transactions:,} transactions"
        )
    CONSOLE.print(f"auto chooses: {explanation.auto}")
