"""Shows what the live page shows in a terminal, or as a line of JSON for each read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from spanner_schema.model.suggestions import suggest_name
from watcher.cli.interruption import parse_interval, run_until_interrupted
from watcher.cli.output import CONSOLE, ERRORS, print_json
from watcher.model.errors import ConsumerNotFoundError, WatcherError
from watcher.overview.as_json import describe_overview
from watcher.overview.conditions import Health, Level, judge
from watcher.overview.copies import ReadProofs, no_proofs
from watcher.overview.observer import Observer
from watcher.overview.values import BackfillOverview, ConsumerOverview, Count, Overview
from watcher.process.terminal.tables import TableColumn, print_table
from watcher.settings.fields import duration_seconds
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import connect
from watcher.spanner.failures import CALL_ERRORS
from watcher.spanner.timestamps import format_timestamp

CONSUMER_COLUMNS = (
    TableColumn("consumer"),
    TableColumn("condition"),
    TableColumn("lag", right=True),
    TableColumn("rows behind", drop=2, right=True),
    TableColumn("rows/s", drop=3, right=True),
    TableColumn("delivered", drop=4, right=True),
    TableColumn("until data is lost", drop=1),
)
INDEX_COLUMNS = (
    TableColumn("index of"),
    TableColumn("rows", right=True),
    TableColumn("fullest shard", drop=2, right=True),
    TableColumn("may be cleared", drop=1, right=True),
    TableColumn("clearing waits for", drop=3),
)
MORE = "--json has them"
LINES_BESIDE = 16
"""Lines of the screen that are not rows of the two tables."""
NO_CONSUMER = "no consumer is registered: start one with 'watch --consumer NAME'"


def watch_status(
    *,
    database: str,
    consumer: str | None,
    every: str,
    staleness: str,
    positions_table: str,
    json_output: bool,
    read_proofs: ReadProofs = no_proofs,
) -> None:
    """Shows everything again and again, until Ctrl-C or SIGTERM. The first read may fail.

    ``every`` and ``staleness`` are durations, such as 5s.
    """
    pause = parse_interval(every)
    address = DatabaseAddress.parse(database)
    seconds = duration_seconds(staleness)
    observer = Observer(
        connect(address), address, positions_table, seconds, read_proofs=read_proofs
    )
    first = observer.read()
    check_name(consumer, {each.consumer for each in first.consumers})
    show = print_line if json_output else print_screen

    def show_one(overview: Overview) -> None:
        show(choose_consumer(overview, consumer))

    def show_all(stopped: threading.Event) -> None:
        show_one(first)
        while not stopped.wait(pause):
            show_again(observer.read, show_one, stopped)

    with choose_screen(json_output):
        run_until_interrupted(show_all)


def check_name(consumer: str | None, known: Collection[str]) -> None:
    """Raises ConsumerNotFoundError for a consumer that is named and not known."""
    if consumer is not None and consumer not in known:
        advice = suggest_name(consumer, known, "the consumers are")
        raise ConsumerNotFoundError(f"consumer '{consumer}' does not exist; {advice}")


@contextmanager
def choose_screen(json_output: bool) -> Iterator[None]:
    """The alternate screen of a terminal; what was there before comes back at the end."""
    if json_output or not CONSOLE.is_terminal:
        yield
        return
    with CONSOLE.screen():
        yield


def show_again(
    read: Callable[[], Overview], show: Callable[[Overview], None], stopped: threading.Event
) -> None:
    """Reads and shows; what may go away is printed, and the next read may succeed."""
    try:
        overview = read()
    except (*CALL_ERRORS, WatcherError) as error:
        ERRORS.print(f"the database could not be read, trying again: {error}")
        return
    if not stopped.is_set():
        show(overview)


def choose_consumer(overview: Overview, name: str | None) -> Overview:
    """The overview with one consumer, if one is named."""
    if name is None:
        return overview
    return replace(
        overview,
        consumers=tuple(each for each in overview.consumers if each.consumer == name),
        backfills=tuple(each for each in overview.backfills if each.consumer == name),
    )


def print_line(overview: Overview) -> None:
    """A read as a line of JSON."""
    print_json(describe_overview(overview))


def print_screen(overview: Overview) -> None:
    """A read for people: over the one before on a terminal, after it in a pipe."""
    rows = len(overview.consumers) + len(overview.indexes)
    if CONSOLE.is_terminal:
        CONSOLE.clear()
        rows = max(4, CONSOLE.height - LINES_BESIDE)
    CONSOLE.print(f"{overview.database}  read at {format_timestamp(overview.read_at)}")
    healths = {each.consumer: judge(each, overview.database) for each in overview.consumers}
    consumers = [make_consumer_cells(each, healths[each.consumer]) for each in overview.consumers]
    if consumers:
        print_rows(CONSUMER_COLUMNS, consumers, rows)
        print_health(dict(list(healths.items())[:rows]), overview.read_at)
    else:
        CONSOLE.print(NO_CONSUMER)
    for backfill in overview.backfills:
        CONSOLE.print(describe_backfill(backfill))
    indexes = [
        (
            each.table,
            describe_count(each.rows),
            format_count(max(shard.count.rows for shard in each.shards)),
            describe_count(each.clearable),
            each.slowest_consumer or "-",
        )
        for each in overview.indexes
        if each.rows.rows or each.slowest_consumer
    ]
    if indexes:
        print_rows(INDEX_COLUMNS, indexes, max(2, rows - len(consumers)))
    if CONSOLE.is_terminal:
        CONSOLE.print("Ctrl-C ends")


def print_health(healths: Mapping[str, Health], now: int) -> None:
    """What is the matter with each consumer, whole, and what to do; nothing of those that run."""
    for name, health in healths.items():
        for found in health.findings:
            if found.level is Level.OK:
                continue
            since = "" if found.since is None else f", for {format_span((now - found.since) / 1e6)}"
            CONSOLE.print(f"{name}: {found.condition}{since}: {found.text}")
            if found.advice:
                CONSOLE.print(f"    {found.advice}")
            if found.command:
                CONSOLE.print(f"    {found.command}", soft_wrap=True)


def print_rows(
    columns: Sequence[TableColumn], rows: Sequence[tuple[str, ...]], rows_max: int
) -> None:
    """Rows as a table, as many as there is room for."""
    print_table(CONSOLE, columns, rows[:rows_max], MORE)
    if len(rows) > rows_max:
        CONSOLE.print(f"and {len(rows) - rows_max} more: {MORE}")


def make_consumer_cells(consumer: ConsumerOverview, health: Health) -> tuple[str, ...]:
    """The cells of a consumer."""
    asked = f", asked to {consumer.command}" if consumer.command else ""
    rate = consumer.rows_per_second
    return (
        consumer.consumer,
        f"{health.worst.condition}{asked}",
        "-" if consumer.lag_seconds is None else format_span(consumer.lag_seconds),
        describe_count(consumer.rows_behind),
        "-" if rate is None else f"{rate:,.1f}",
        "-" if consumer.delivered_rows is None else format_count(consumer.delivered_rows),
        describe_deadline(consumer),
    )


def describe_deadline(consumer: ConsumerOverview) -> str:
    """When the first data is lost, in words. Polled rows stay in the index until they are read."""
    lost, exact = consumer.lost_in_seconds, consumer.exact_for_seconds
    if lost is not None:
        return format_span(lost) if lost > 0 else "records may be lost"
    if exact is None:
        return "-"
    return f"none; exact for {format_span(exact)}" if exact > 0 else "none; not exact any more"


def describe_backfill(backfill: BackfillOverview) -> str:
    """A backfill in a line."""
    exact = backfill.exact_for_seconds
    kept = f"for {format_span(exact)}" if exact > 0 else "no longer"
    return (
        f"backfill of {backfill.table} for {backfill.consumer}: {describe_count(backfill.left)}"
        f" rows left; Spanner keeps its versions {kept}"
    )


def describe_count(count: Count | None) -> str:
    """A number of rows, with ``>=`` where counting has stopped at a limit."""
    if count is None:
        return "-"
    return f">= {count.rows:,}" if count.at_least else f"{count.rows:,}"


def format_count(value: object) -> str:
    """A number of rows; ``?`` where it is not known."""
    return f"{value:,}" if isinstance(value, int) else "?"


def format_span(seconds: float) -> str:
    """A length of time in two units at most."""
    left = max(0.0, seconds)
    if left < 10:
        return f"{left:.1f} s"
    if left < 120:
        return f"{left:.0f} s"
    if left < 7_200:
        return f"{left / 60:.0f} min"
    hours = int(left // 3_600)
    if hours < 48:
        return f"{hours} h {int(left % 3_600 // 60):02d} min"
    return f"{hours // 24} d {hours % 24} h"
