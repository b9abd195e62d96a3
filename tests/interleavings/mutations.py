"""Faults that the product had, as patches that put them back: the explorer has to find each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import interleavings.scenarios.moves
import interleavings.scenarios.watching
import watcher.captures.change_stream.row_reads
import watcher.consumers.clearing.bounds
import watcher.consumers.divisions
import watcher.consumers.leases
import watcher.consumers.positions.rows
import watcher.consumers.positions.selections
import watcher.consumers.positions.spanner
import watcher.runners.watcher
import watcher.tables.epochs
from interleavings.patches import patch_attribute, patch_everywhere
from spanner_schema.model.schema import Schema
from watcher.captures.change_stream.watched import ChangeFilter
from watcher.captures.change_stream.whole_rows import WholeRows
from watcher.captures.poll import PollCapture
from watcher.consumers.clearing.bounds import Slowest, find_least_positions, list_awaited
from watcher.consumers.holding import Holding
from watcher.consumers.lease_statements import LeaseStatements
from watcher.consumers.leases import Consumers, Lease
from watcher.consumers.positions import Position, SpannerPositions
from watcher.consumers.positions.rows import MovedRows, StoredPosition, StoredRows, merge_position
from watcher.consumers.positions.spanner import demand_owner
from watcher.consumers.positions.unregister import unregister
from watcher.consumers.positions.values import check_backfills
from watcher.consumers.starts import Standing
from watcher.consumers.states import ConsumerProgress, State
from watcher.model.errors import LeaseHeldError
from watcher.model.window import BEGINNING, ShardGroup, ShardSlice, Window
from watcher.planning.sources import SourceAnswers
from watcher.planning.windows import Look, LookAt, raise_end
from watcher.runners.delivery.ends import LeastEnds
from watcher.runners.spark.query_tables import QueryTables
from watcher.runners.spark.resolution import resolve_scan_again
from watcher.runners.spark.resolved_scan import QueryAnswers, ResolvedScan
from watcher.runners.spark.scan import Scan
from watcher.sinks.kafka import KafkaSink
from watcher.sinks.retries import RetryingSink
from watcher.tables.epochs import Epochs
from watcher.tables.parts import Part, keep_part, list_parts
from watcher.tables.selection import Selection
from watcher.tables.values import WatchedTable

CLEARER = "a"
"""The consumer that clears, in every scenario."""
INTERVALS_MAX = 1_000


@dataclass(frozen=True)
class Mutation:
    """A fault, the part of the protocol that it belongs to, and the variant in which it shows."""

    name: str
    part: str
    variant: str
    patch: Callable[[], AbstractContextManager[None]]
    seed: int = 1
    """Of schedules among which it is found soon."""

    def remove(self) -> AbstractContextManager[None]:
        """While it lasts, the fault is there."""
        return self.patch()


def do_nothing(*_arguments: object, **_options: object) -> None:
    """In place of a check or a write."""


def keep_end(_least: object, _positions: object, end: int, _latest: int) -> int:
    """In place of an end that is raised: the same end."""
    return end


def discard_producer(sink: KafkaSink) -> None:
    """In place of a producer that stays."""
    sink._producer, sink._begun = None, False
    sink._failures.clear()


def return_empty(*_arguments: object, **_options: object) -> dict[str, Any]:
    """In place of a read: an empty answer."""
    return {}


@contextmanager
def write_progress_blindly() -> Iterator[None]:
    """Backfill progress is written even if another instance has written progress since, and nothing
    is checked before a page."""
    with ExitStack() as stack:
        stack.enter_context(patch_everywhere(demand_owner, do_nothing))
        stack.enter_context(patch_everywhere(check_backfills, do_nothing))
        stack.enter_context(patch_attribute(Holding, "check", do_nothing))
        yield


def replace_once(text: str, old: str, new: str) -> str:
    """A statement with a part replaced, which must be in it: else nothing is put back."""
    assert text.count(old) == 1, (old, text)
    return text.replace(old, new)


@contextmanager
def write_lease_in_a_second_commit() -> Iterator[None]:
    """The owner is written first, the lease by a renewal."""
    take = LeaseStatements.__dict__["take"].fget
    acquire = Consumers.acquire

    def without_lease(statements: LeaseStatements) -> str:
        return replace_once(take(statements), f" `LeaseUntil` = {statements.lease_until},", "")

    def acquire_and_renew(consumers: Consumers, *arguments: Any, **options: Any) -> Lease:
        lease = acquire(consumers, *arguments, **options)
        consumers.renew(lease, State.STARTING, ConsumerProgress())
        return lease

    with (
        patch_attribute(LeaseStatements, "take", property(without_lease)),
        patch_attribute(Consumers, "acquire", acquire_and_renew),
    ):
        yield


def acquire_and_erase_command() -> AbstractContextManager[None]:
    """Acquiring erases the operator's command."""
    take = LeaseStatements.__dict__["take"].fget

    def erase(statements: LeaseStatements) -> str:
        owner = "`Owner` = @owner,"
        return replace_once(take(statements), owner, f"{owner} `Command` = NULL,")

    return patch_attribute(LeaseStatements, "take", property(erase))


@contextmanager
def freeze_schema() -> Iterator[None]:
    """Every window has the first schema that was read."""
    latest, real = Epochs.latest, Epochs.at

    def first(epochs: Epochs[Any], timestamp: int) -> Any:
        return next(iter(epochs._kept.values()), None) or real(epochs, timestamp)

    def first_too(epochs: Epochs[Any]) -> Any:
        epoch, _ = latest(epochs)
        return epoch, next(iter(epochs._kept.values()))

    with patch_attribute(Epochs, "at", first), patch_attribute(Epochs, "latest", first_too):
        yield


def imitate_older_release() -> AbstractContextManager[None]:
    """Consumers of a release that stores no selection, beside one that clears and does."""
    real = watcher.consumers.positions.selections.store_selection

    def store(transaction: Any, table: str, consumer: str, selection: str | None) -> None:
        real(transaction, table, consumer, selection if consumer == CLEARER else None)

    return patch_attribute(watcher.consumers.positions.spanner, "store_selection", store)


@contextmanager
def go_back_in_two_commits() -> Iterator[None]:
    """A query that starts earlier is taken away and registered anew."""
    register = SpannerPositions.register

    def forget_and_register(positions: SpannerPositions, registration: Any, owner: Any) -> Any:
        kept = positions.load_all(registration.consumer)
        if any(kept.get(table, at) > at for table, at in registration.starts.items()):
            positions.remove(registration.consumer, list(kept))
        return register(positions, registration, owner)

    with (
        patch_attribute(SpannerPositions, "register", forget_and_register),
        imitate_older_release(),
    ):
        yield


def unregister_in_two_commits(database: Any, positions_table: str, consumer: str) -> None:
    """Checks whether a consumer is alive and removes it, in two transactions."""
    status = Consumers(database, positions_table).status(consumer)
    if status is not None and status.alive:
        raise LeaseHeldError(f"consumer '{consumer}' is alive")
    positions = SpannerPositions(database, positions_table)
    positions.remove(consumer, list(positions.load_all(consumer)))


def deliver_unchecked(sink: Any, policy: Any, **options: Any) -> RetryingSink:
    """The lease is checked before a batch only."""
    options.pop("check", None)
    return RetryingSink(sink, policy, **options)


def count_other_positions(
    table: WatchedTable, positions: Sequence[Position], selections: Mapping[str, Selection]
) -> list[Slowest]:
    """A consumer without a position in the table is taken to be where it is in others."""
    least = find_least_positions(positions)
    awaited = list_awaited(table, positions, selections)
    return [
        each if each.registered else replace(each, micros=least.get(each.consumer, BEGINNING))
        for each in awaited
    ]


@contextmanager
def ignore_cleared() -> Iterator[None]:
    """A consumer that registers does not read how far was cleared. The selection is not stored
    either: with it, clearing would wait for the consumer."""
    with (
        patch_attribute(watcher.consumers.positions.spanner, "read_cleared", return_empty),
        imitate_older_release(),
    ):
        yield


@contextmanager
def hide_cleared() -> Iterator[None]:
    """As ``ignore_cleared``, because clearing does not write how far it went."""
    with (
        patch_attribute(watcher.consumers.clearing.bounds, "write_cleared", do_nothing),
        imitate_older_release(),
    ):
        yield


@contextmanager
def skip_lease_checks() -> Iterator[None]:
    """The lease is not checked before a page, a batch or a change; writes are still fenced."""
    with patch_attribute(Holding, "check", do_nothing):
        yield


@contextmanager
def cut_as_of_now() -> Iterator[None]:
    """A batch that is cut has the tables that have changed as of now."""

    def look_as_of_now(_answers: QueryAnswers, question: LookAt[ResolvedScan]) -> Look:
        return Look(question.at, question.assumed)

    with patch_attribute(SourceAnswers, "look_at", look_as_of_now):
        yield


@contextmanager
def freeze_tables() -> Iterator[None]:
    """A query has the tables of its start; after the next start new ones begin at its position."""

    def resolve(scan: Scan, schema: Schema) -> Scan:
        return resolve_scan_again(scan, schema).select_tables(scan.tables)

    with patch_everywhere(resolve_scan_again, resolve), begin_at_position():
        yield


def begin_at_position() -> AbstractContextManager[None]:
    """A table that is new begins at the query's position."""

    def starts(_tables: QueryTables, tables: Iterable[str], place: Any) -> dict[str, int]:
        return dict.fromkeys(tables, place.position)

    return patch_attribute(QueryTables, "list_starts", starts)


@contextmanager
def freeze_streams() -> Iterator[None]:
    """A query of a change stream has the tables of its start."""

    def resolve(scan: Scan, schema: Schema) -> Scan:
        again = resolve_scan_again(scan, schema).select_tables(scan.tables)
        return replace(again, stream=scan.stream)

    def takes_listed(watched: ChangeFilter, name: str) -> bool:
        return not watched.tables or name in watched.tables

    with (
        patch_everywhere(resolve_scan_again, resolve),
        patch_attribute(ChangeFilter, "accepts_table", takes_listed),
    ):
        yield


@contextmanager
def complete_with_newest_columns() -> Iterator[None]:
    """The records of a change stream are completed with the columns that their tables have now."""

    def find_newest(whole: WholeRows, _record: object, _end: int) -> Iterator[Schema]:
        yield whole._epochs.latest()[1]

    def refuse(_error: BaseException) -> bool:
        return False

    with (
        patch_attribute(WholeRows, "_find_schemas", find_newest),
        patch_attribute(watcher.captures.change_stream.row_reads, "is_schema_refusal", refuse),
    ):
        yield


def begin_at_least_position(standing: Standing, _table: str, start: int | None) -> int | None:
    """In place of ``choose_start``: a new table begins where the consumer is in others."""
    return min(standing.positions.values()) if standing.positions else start


def merge_known(positions: Iterable[StoredPosition | None], unplanned: int) -> StoredPosition:
    """In place of ``merge_position``: who has no position does not count."""
    return merge_position([each for each in positions if each is not None], unplanned)


def unregister_one_by_one(database: Any, positions_table: str, shared: str) -> None:
    """In place of ``unregister``: each part in a transaction of its own."""
    for part in list_parts(2):
        unregister(database, positions_table, part.name_consumer(shared))


@contextmanager
def take_parts_again() -> Iterator[None]:
    """Nobody asks whether a consumer is still divided."""
    with (
        patch_attribute(StoredRows, "check_division", do_nothing),
        patch_attribute(StoredRows, "check_divided", do_nothing),
    ):
        yield


def renew_for_anybody() -> AbstractContextManager[None]:
    """A renewal does not say whose the lease is."""
    renew = LeaseStatements.__dict__["renew"].fget

    def of_anybody(statements: LeaseStatements) -> str:
        return replace_once(renew(statements), " AND `Owner` = @owner", "")

    return patch_attribute(LeaseStatements, "renew", property(of_anybody))


def take_from_the_living() -> AbstractContextManager[None]:
    """A name is given to whoever asks for it."""
    read = Consumers._read_holder

    def read_dead(consumers: Consumers, transaction: Any, consumer: str) -> Any:
        holder = read(consumers, transaction, consumer)
        return replace(holder, alive=False) if holder is not None else None

    return patch_attribute(Consumers, "_read_holder", read_dead)


def intervals_of(window: Window) -> tuple[str, ...]:
    """The minutes that a window touches, and one more on each side."""
    first, last = (micros // 60_000_000 for micros in (window.start, window.end))
    numbers = range(max(first, last - INTERVALS_MAX) - 1, last + 2)
    return tuple(
        datetime.fromtimestamp(number * 60, UTC).strftime("%Y-%m-%dT%H:%M") for number in numbers
    )


@contextmanager
def read_by_intervals() -> Iterator[None]:
    """A window is read by the intervals that it touches, and looked at by IS NOT NULL."""
    real = PollCapture._read_at

    def read_at(capture: PollCapture, part: ShardSlice, at: int | None) -> Iterator[Any]:
        shards = ShardGroup(0, intervals_of(part.window))
        return real(capture, replace(part, shards=shards), at)

    with patch_attribute(PollCapture, "_read_at", read_at):
        yield


def keep_every_shard(table: WatchedTable, _part: Part) -> WatchedTable:
    """Each part has the rows of all."""
    return table


MUTATIONS = (
    Mutation(
        "registration does not read cleared-to",
        "1",
        "backfill",
        ignore_cleared,
        seed=2,
    ),
    Mutation(
        "a start at 'latest' does not read cleared-to",
        "1",
        "latest",
        ignore_cleared,
    ),
    Mutation(
        "clearing does not say how far",
        "1",
        "backfill",
        hide_cleared,
        seed=7,
    ),
    Mutation(
        "positions are saved whoever owns the lease",
        "1",
        "spark-replaced",
        lambda: patch_everywhere(demand_owner, do_nothing),
    ),
    Mutation(
        "no look at the lease before a page or a change",
        "1",
        "takeover-backfill",
        skip_lease_checks,
    ),
    Mutation(
        "backfill progress is a blind write", "1", "frozen-backfill", write_progress_blindly, seed=6
    ),
    Mutation(
        "the lease is looked at before a batch only",
        "1",
        "frozen",
        lambda: patch_attribute(watcher.runners.watcher, "RetryingSink", deliver_unchecked),
        seed=2,
    ),
    Mutation("columns are those of the start", "2", "add-column", freeze_schema),
    Mutation("index and shards are those of the start", "2", "reshard", freeze_schema),
    Mutation("the lease is in a second commit", "3.5", "standby", write_lease_in_a_second_commit),
    Mutation("acquiring erases the command", "3.5", "spark-stopped", acquire_and_erase_command),
    Mutation(
        "unregistering is two commits",
        "3.7",
        "operator",
        lambda: patch_attribute(
            interleavings.scenarios.watching, "unregister", unregister_in_two_commits
        ),
    ),
    Mutation(
        "clearing does not know selections",
        "3.8",
        "new-table",
        lambda: patch_attribute(watcher.consumers.clearing.bounds, "read_selections", return_empty),
    ),
    Mutation(
        "who has not registered a table counts with its other positions",
        "1",
        "new-table-between-runs",
        lambda: patch_attribute(
            watcher.consumers.clearing.bounds, "list_awaited", count_other_positions
        ),
    ),
    Mutation("a query starts earlier in two commits", "1", "spark-earlier", go_back_in_two_commits),
    Mutation("a query registers without cleared-to", "1", "spark-earliest", ignore_cleared, seed=3),
    Mutation("a query reads the shards of its start", "1", "spark-reshard", freeze_schema),
    Mutation("a cut batch has what changed as of now", "1", "spark-cut", cut_as_of_now, seed=5),
    Mutation("a query ignores new tables", "1", "spark-new-table", freeze_tables),
    Mutation(
        "a new table begins at the query's position", "1", "spark-new-table", begin_at_position
    ),
    Mutation(
        "a query ignores new tables of its stream", "1", "spark-stream-new-table", freeze_streams
    ),
    Mutation(
        "records are completed with the newest columns",
        "2",
        "stream-schema",
        complete_with_newest_columns,
    ),
    Mutation(
        "a window that comes again may be shorter",
        "1",
        "cut",
        lambda: patch_everywhere(raise_end, keep_end),
    ),
    Mutation(
        "no end is planned ahead",
        "1",
        "cut",
        lambda: patch_attribute(LeastEnds, "_store", do_nothing),
    ),
    Mutation(
        "a part has the rows of all",
        "10",
        "shared",
        lambda: patch_everywhere(keep_part, keep_every_shard),
    ),
    Mutation(
        "a producer follows one whose requests are not answered",
        "9",
        "late-request",
        lambda: patch_attribute(KafkaSink, "discard", discard_producer),
    ),
    Mutation(
        "a new table of a shared consumer begins at the least position",
        "6",
        "shared-new-table",
        lambda: patch_attribute(
            watcher.consumers.divisions, "choose_start", begin_at_least_position
        ),
    ),
    Mutation("a thawed instance takes parts that were merged", "13", "merge", take_parts_again),
    Mutation(
        "a part without a position does not count",
        "13",
        "merge-missing",
        lambda: patch_attribute(watcher.consumers.positions.rows, "merge_position", merge_known),
    ),
    Mutation(
        "who is merged forgets what it polls",
        "13",
        "merged-new-table",
        lambda: patch_attribute(MovedRows, "write_state", do_nothing),
    ),
    Mutation(
        "a shared consumer is unregistered part by part",
        "13",
        "forget",
        lambda: patch_attribute(interleavings.scenarios.moves, "unregister", unregister_one_by_one),
    ),
    Mutation(
        "a consumer leaves its old name open",
        "14",
        "rename",
        lambda: patch_attribute(MovedRows, "fence", do_nothing),
    ),
    Mutation("a lease is renewed by anybody", "4", "frozen", renew_for_anybody),
    Mutation("a name is taken from an instance that lives", "1", "standby", take_from_the_living),
    Mutation("a window is read by its intervals", "3.2", "time-shards", read_by_intervals),
)
