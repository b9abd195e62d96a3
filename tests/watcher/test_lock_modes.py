"""No transaction of a watcher holds a lock that would outlive its process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from fixtures.consumers import consumers_of, options, watcher_of, write
from fixtures.sent_requests import SentRequests
from fixtures.singers import address_of
from google.cloud.spanner_v1 import COMMIT_TIMESTAMP, KeySet, TransactionOptions
from google.cloud.spanner_v1.database import Database

from conformance.writers import fresh_database
from watcher import Watcher
from watcher.consumers.clearing import Clearing, Fence, Method
from watcher.consumers.positions import SpannerPositions
from watcher.consumers.states import ConsumerProgress, State
from watcher.spanner import transactions
from watcher.tables.discovery import discover_table

LockMode = TransactionOptions.ReadWrite.ReadLockMode
OTHER = ("other", str(State.NOT_STARTED), COMMIT_TIMESTAMP)


def options_of(request: Any) -> list[Any]:
    """The transactions that a request begins."""
    if hasattr(request, "options"):
        return [request.options]
    if hasattr(request, "transaction") and "begin" in request.transaction:
        return [request.transaction.begin]
    return []


def count_modes(requests: SentRequests) -> Counter[str]:
    """The read-write transactions that begin, by their lock modes."""
    return Counter(
        LockMode(begun.read_write.read_lock_mode).name
        for _, request in requests
        for begun in options_of(request)
        if "read_write" in begun
    )


def reopen(database: Database) -> Database:
    """The database through a client of its own, whose calls are seen."""
    return fresh_database(address_of(database))


def deliver(music: Database) -> None:
    watcher_of(music, [], consumer="name").run_once()


def fill(music: Database) -> None:
    watcher = Watcher(**options(music, consumer="name", start="latest", backfill=["Singers"]))
    watcher.on_change(lambda _: None)
    watcher.run_once()


def clear_by_index(music: Database) -> None:
    database = reopen(music)
    consumers, positions = consumers_of(database), SpannerPositions(database)
    watcher_of(music, [], consumer="name").run_once()
    lease = consumers.acquire("name", 3600.0)
    table = discover_table(database, "Singers")
    cleared = Clearing(
        database, table, positions, 0.0, Method.INDEX, Fence("name", lease.owner)
    ).clear()
    assert cleared.rows
    consumers.release(lease, State.NOT_STARTED, ConsumerProgress())


@pytest.mark.parametrize("work", [deliver, fill, clear_by_index])
def test_a_watcher_locks_nothing_before_it_commits(
    music: Database, sent_requests: SentRequests, work: Callable[[Database], None]
) -> None:
    write(music, 1)
    consumers_of(music).create()
    sent_requests.clear()
    work(music)
    modes = count_modes(sent_requests)
    assert modes["OPTIMISTIC"] > 2
    assert set(modes) == {"OPTIMISTIC"}


def test_who_is_aborted_again_and_again_locks_what_it_reads(
    music: Database, sent_requests: SentRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "OPTIMISTIC_SECONDS", 0.0)
    consumers = consumers_of(music)
    consumers.create()
    table = consumers.table
    seen: list[int] = []

    def work(transaction: Any) -> None:
        seen.append(len(list(transaction.read(table, ("Consumer",), KeySet(all_=True)))))
        if len(seen) == 1:
            with music.batch() as batch:
                batch.insert(table, ("Consumer", "State", "UpdatedAt"), [OTHER])
        transaction.delete(table, KeySet(keys=[["none"]]))

    sent_requests.clear()
    transactions.run_optimistically(reopen(music), work)
    assert seen == [0, 1]
    assert count_modes(sent_requests)["READ_LOCK_MODE_UNSPECIFIED"] == 1
