"""``spanner-watcher status``: the state of each consumer, and how far behind it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from watcher.cli.options import (
    POSITIONS_TABLE,
    ConsumerOption,
    CopiesOption,
    DatabaseOption,
    EveryOption,
    JsonOption,
    PositionsTableOption,
    StalenessOption,
)
from watcher.cli.output import CONSOLE, print_json
from watcher.consumers.states import ConsumerStatus, StoredError
from watcher.model.errors import (
    ConfigurationError,
    NotWatchableError,
    TableNotFoundError,
)
from watcher.process.terminal.loading import to_run

if to_run(__name__):
    from google.cloud.spanner_v1.database import Database

    from watcher.captures.poll import PollCapture
    from watcher.cli.interruption import parse_interval
    from watcher.cli.status_watch import (
        NO_CONSUMER,
        check_name,
        format_count,
        print_health,
        watch_status,
    )
    from watcher.consumers.positions import Position
    from watcher.model.window import BEGINNING, Window
    from watcher.overview.as_json import describe_health, describe_proof
    from watcher.overview.assembly import describe_state
    from watcher.overview.conditions import judge
    from watcher.overview.copies import make_proof_reader, no_proofs
    from watcher.overview.observer import Observer
    from watcher.overview.reader import StaleReader
    from watcher.overview.stored import read_errors, read_own_columns, read_stored_state
    from watcher.process.terminal.tables import TableColumn, print_table
    from watcher.settings.destination_grammar import parse_copies_destination
    from watcher.settings.fields import duration_seconds
    from watcher.spanner.address import DatabaseAddress
    from watcher.spanner.database import connect
    from watcher.spanner.queries import QueryClient
    from watcher.spanner.timestamps import format_timestamp
    from watcher.tables.discovery import discover_table
    from watcher.tables.shards import group_shards


def command(
    database: DatabaseOption,
    consumer: ConsumerOption = None,
    errors: Annotated[
        bool, typer.Option("--errors", help="Also list the stored errors of the consumers.")
    ] = False,
    by_shard_group: Annotated[
        int,
        typer.Option(
            "--shard-groups",
            min=0,
            metavar="NUMBER",
            help="Count the lag in this many shard groups.",
        ),
    ] = 0,
    to: CopiesOption = None,
    positions_table: PositionsTableOption = POSITIONS_TABLE,
    json_output: JsonOption = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Show it again and again, as 'page' does; with --json a line for each read.",
        ),
    ] = False,
    every: EveryOption = "5s",
    staleness: StalenessOption = "10s",
) -> None:
    """Show the state and the lag of each consumer.

    Shows condition, position, lag, and rate for each consumer and table. Counts the rows behind
    with a query of the index alone. The worst consumers come first, and below the table is what
    is the matter with each and what to do.

    With --watch also the time until data is lost, backfills and the rows in the indexes: by reads
    that are a few seconds old (--staleness, --every), and counts that stop at a limit.
    """
    parse_interval(every)
    duration_seconds(staleness)
    proofs = no_proofs if to is None else make_proof_reader(parse_copies_destination(to).folder)
    if watch:
        if errors or by_shard_group:
            raise ConfigurationError("--errors and --shard-groups do not go with --watch")
        watch_status(
            database=database,
            consumer=consumer,
            every=every,
            staleness=staleness,
            positions_table=positions_table,
            json_output=json_output,
            read_proofs=proofs,
        )
        return
    address = DatabaseAddress.parse(database)
    client = connect(address)
    now = QueryClient(address).fetch_read_timestamp()
    reader = StaleReader(client, now, directed_read=address.directed_read)
    columns = read_own_columns(reader, positions_table)
    state = read_stored_state(reader, positions_table, columns)
    statuses, positions = state.statuses, state.positions
    check_name(consumer, {*statuses, *(position.consumer for position in positions)})
    rows = [
        describe_position(
            client, address, position, statuses.get(position.consumer), by_shard_group, reader.at
        )
        for position in positions
        if consumer in (None, position.consumer)
    ]
    overview = Observer(client, address, positions_table, 0.0, read_proofs=proofs).read()
    chosen = [each for each in overview.consumers if consumer in (None, each.consumer)]
    healths = {each.consumer: judge(each, overview.database) for each in chosen}
    shown = {
        (each.consumer, table.table): describe_proof(table.proof)
        for each in chosen
        for table in each.tables
    }
    rows = [
        row
        | describe_health(healths[str(row["consumer"])])
        | {"proof": shown.get((str(row["consumer"]), str(row["table"])))}
        for row in rows
    ]
    rows.sort(key=lambda row: healths[str(row["consumer"])].rank)
    names = list(healths)
    asked = names if errors else []
    found = [each for name in asked for each in read_errors(reader, positions_table, columns, name)]
    stored = [describe_error(each) for each in found]
    if json_output:
        print_json({"consumers": rows, "errors": stored})
        return
    print_status(rows)
    print_health(healths, overview.read_at)
    for each in chosen:
        for proved in each.tables:
            if proved.proof is not None:
                CONSOLE.print(f"{each.consumer}: {proved.table}: {proved.proof.text}")
    for error in stored:
        CONSOLE.print(f"{error['at']}  {error['consumer']}  {error['kind']}: {error['message']}")


def describe_error(error: StoredError) -> dict[str, str]:
    """A stored error, for JSON."""
    return {
        "consumer": error.consumer,
        "at": format_timestamp(error.occurred_at),
        "kind": error.kind,
        "message": error.message,
    }


def describe_position(
    client: Database,
    address: DatabaseAddress,
    position: Position,
    status: ConsumerStatus | None,
    shard_groups: int,
    now: int,
) -> dict[str, object]:
    """One table of a consumer, for JSON; ``now`` is Spanner's time."""
    progress = status.progress if status else None
    ended = status is not None and status.ended
    lag = (now - position.micros) / 1_000_000
    row: dict[str, object] = {
        "consumer": position.consumer,
        "table": position.table,
        "state": describe_state(status),
        "alive": status.alive if status else False,
        "ended_at": format_timestamp(status.updated_at) if status and ended else None,
        "reason": status.reason if status and ended else None,
        "position": format_timestamp(position.micros),
        "lag_seconds": None if ended or position.micros == BEGINNING else round(lag, 3),
        "lag_rows": None,
        "delivered_rows": progress.rows if progress else None,
        "rows_per_second": round(progress.rows_per_second, 3) if progress else None,
        "dead_letters": progress.dead_letters if progress else None,
    }
    try:
        table = discover_table(client, position.table)
    except (NotWatchableError, TableNotFoundError) as error:
        return row | {"note": str(error)}
    capture = PollCapture(QueryClient(address), table, ())
    window, changed = capture.look(position.micros)
    row["lag_rows"] = capture.count(window) if changed else 0
    if shard_groups:
        row["lag_rows_by_shard_group"] = count_by_group(capture, window, shard_groups)
    return row


def count_by_group(capture: PollCapture, window: Window, count: int) -> dict[str, int]:
    """Counts the rows of a window in each group of shards."""
    return {
        str(group.number): capture.count(window, group)
        for group in group_shards(capture.table.shard_values, count)
    }


def print_status(rows: Sequence[Mapping[str, object]]) -> None:
    """The rows as a table for people."""
    if not rows:
        CONSOLE.print(NO_CONSUMER)
        return
    columns = (
        TableColumn("consumer"),
        TableColumn("table"),
        TableColumn("condition"),
        TableColumn("position", drop=2),
        TableColumn("lag", right=True),
        TableColumn("rows behind", drop=1, right=True),
        TableColumn("delivered", drop=3, right=True),
    )
    print_table(CONSOLE, columns, [make_cells(row) for row in rows], "--json has them")


def make_cells(row: Mapping[str, object]) -> tuple[str, ...]:
    """The cells of a row. One that has ended has no lag: it is not meant to follow."""
    lag = row["lag_seconds"]
    return (
        str(row["consumer"]),
        str(row["table"]),
        str(row["condition"]),
        str(row["position"]),
        "-" if lag is None else f"{lag} s",
        format_count(row["lag_rows"]),
        format_count(row["delivered_rows"]),
    )
