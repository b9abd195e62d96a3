"""Random transactions of several threads through the official client: some order explains them all.

Every transaction appends its number to lists and reads lists, by key, by range, by index or all of
them, with DML and mutations. What it has read then names, element by element, who wrote before it:
the history must be that of the transactions one after another, in the order of their commit
timestamps, and that order has no circle of dependencies.
"""

from __future__ import annotations

import itertools
import os
import random
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from google.api_core.datetime_helpers import DatetimeWithNanoseconds
from google.cloud.spanner_v1 import KeyRange, KeySet, TransactionOptions, param_types
from google.cloud.spanner_v1.database import Database

THREADS, KEYS = 6, 8
TRANSACTIONS = int(os.environ.get("SERIALIZABILITY_TRANSACTIONS", "25"))
"""Of each thread."""
TABLE = "CREATE TABLE Lists (K INT64 NOT NULL, Shard INT64, L STRING(MAX)) PRIMARY KEY (K)"
INDEX = "CREATE INDEX ByShard ON Lists (Shard)"
INT64 = {"k": param_types.INT64}
LockMode = TransactionOptions.ReadWrite.ReadLockMode
NUMBERS = itertools.count(1)

List = tuple[int, ...]
Lists = Mapping[int, List]


@dataclass
class History:
    """A committed transaction: what it saw of the lists (a list that is not there is missing from
    a range), which lists it appended to, and when it committed."""

    number: int
    seen: list[tuple[range, Lists]] = field(default_factory=list)
    appended: set[int] = field(default_factory=set)
    at: DatetimeWithNanoseconds | None = None


def parse(text: str | None) -> List:
    """A list as it is stored."""
    return tuple(map(int, text.split())) if text else ()


class Attempt:
    """One attempt at a transaction; ``history`` is what it did."""

    def __init__(self, transaction: Any, number: int, choice: random.Random) -> None:
        self.transaction = transaction
        self.history = History(number)
        self.choice = choice
        self.written: dict[int, List] = {}

    def run(self) -> None:
        """Some reads and appends; mutations come last, because nobody reads them back."""
        steps = [self.read_key, self.read_range, self.read_shard, self.append_by_dml]
        for _ in range(self.choice.randrange(1, 5)):
            self.choice.choice(steps)()
        if self.choice.random() < 0.5:
            self.append_by_mutation()
        if self.choice.random() < 0.1:
            self.delete_by_mutation()

    def note(self, keys: range, rows: Sequence[Sequence[Any]]) -> Lists:
        """Remembers what was read, apart from the transaction's own writes."""
        found = {int(row[0]): parse(row[1]) for row in rows}
        own = self.history.number
        others = {key: tuple(n for n in items if n != own) for key, items in found.items()}
        self.history.seen.append((keys, others))
        return found

    def read_key(self) -> Lists:
        """One list, by a query or a read."""
        key = self.choice.randrange(KEYS)
        if self.choice.random() < 0.5:
            sql = "SELECT K, L FROM Lists WHERE K = @k"
            rows = list(self.transaction.execute_sql(sql, {"k": key}, INT64))
        else:
            rows = list(self.transaction.read("Lists", ("K", "L"), KeySet(keys=[[key]])))
        return self.note(range(key, key + 1), rows)

    def read_range(self) -> None:
        """Some lists that stand side by side, or all."""
        low = self.choice.randrange(KEYS)
        high = self.choice.randrange(low, KEYS)
        if self.choice.random() < 0.5:
            sql = f"SELECT K, L FROM Lists WHERE K BETWEEN {low} AND {high}"
            rows = list(self.transaction.execute_sql(sql))
        else:
            keys = KeySet(ranges=[KeyRange(start_closed=[low], end_closed=[high])])
            rows = list(self.transaction.read("Lists", ("K", "L"), keys))
        self.note(range(low, high + 1), rows)

    def read_shard(self) -> None:
        """The lists of one key, found by an index: the key divided by two."""
        shard = self.choice.randrange(KEYS // 2)
        sql = "SELECT K, L FROM Lists@{FORCE_INDEX=ByShard} WHERE Shard = @k"
        rows = list(self.transaction.execute_sql(sql, {"k": shard}, INT64))
        self.note(range(shard * 2, shard * 2 + 2), rows)

    def append_by_dml(self) -> None:
        """Appends without having read the list."""
        key = self.choice.randrange(KEYS)
        if key in self.history.appended:
            return
        update = f"UPDATE Lists SET L = L || ' {self.history.number}' WHERE K = @k"
        if self.transaction.execute_update(update, {"k": key}, INT64) == 1:
            self.history.appended.add(key)
            return
        self.note(range(key, key + 1), [])
        insert = "INSERT INTO Lists (K, Shard, L) VALUES (@k, DIV(@k, 2), '{}')"
        text = insert.format(self.history.number)
        self.transaction.execute_update(text, {"k": key}, INT64)
        self.history.appended.add(key)

    def append_by_mutation(self) -> None:
        """Reads a list and writes a longer one."""
        ((key, items),) = self.read_key().items() or [(None, ())]
        if key is None or key in self.history.appended:
            return
        text = " ".join(map(str, (*items, self.history.number)))
        self.transaction.update("Lists", ("K", "L"), [(key, text)])
        self.history.appended.add(key)

    def delete_by_mutation(self) -> None:
        """Deletes nothing: a key that nobody uses, in the range of those who read all."""
        self.transaction.delete("Lists", KeySet(keys=[[KEYS + 1]]))


def run_thread(
    database: Database, seed: int, started: threading.Barrier, optimistic: float
) -> list[History]:
    """The transactions of one thread that committed; ``optimistic`` is their share."""
    choice = random.Random(seed)
    done: list[History] = []
    started.wait(60)
    for _ in range(TRANSACTIONS):
        number, inner = next(NUMBERS), choice.randrange(1 << 30)
        attempts: list[History] = []

        def work(
            transaction: Any,
            number: int = number,
            inner: int = inner,
            attempts: list[History] = attempts,
        ) -> Any:
            attempt = Attempt(transaction, number, random.Random(inner))
            attempts.append(attempt.history)
            attempt.run()
            return transaction

        mode = LockMode.OPTIMISTIC if choice.random() < optimistic else LockMode.PESSIMISTIC
        transaction = database.run_in_transaction(work, read_lock_mode=mode)
        attempts[-1].at = transaction.committed
        done.append(attempts[-1])
    return done


def replay(history: Sequence[History]) -> dict[int, List]:
    """The lists after all transactions, one after another; each must have seen what was there."""
    lists: dict[int, List] = {}
    for each in history:
        for keys, seen in each.seen:
            there = {key: lists[key] for key in keys if key in lists}
            shown = {key: items for key, items in seen.items() if items or key in lists}
            assert shown == there, f"transaction {each.number} saw {seen} instead of {there}"
        for key in each.appended:
            lists[key] = (*lists.get(key, ()), each.number)
    return lists


def dependencies(history: Sequence[History], lists: Lists) -> dict[int, set[int]]:
    """Who must stand before whom: by the order of writes, by what was read, and by what was not."""
    before: dict[int, set[int]] = defaultdict(set)
    for items in lists.values():
        for earlier, later in itertools.pairwise(items):
            before[later].add(earlier)
    for each in history:
        for keys, seen in each.seen:
            for key in keys:
                items = seen.get(key, ())
                before[each.number].update(items[-1:])
                after = [n for n in lists.get(key, ())[len(items) :] if n != each.number]
                for later in after[:1]:
                    before[later].add(each.number)
    return before


def find_circle(before: Mapping[int, set[int]]) -> list[int]:
    """Numbers of which each stands before the next and the last before the first; none is good."""
    done: set[int] = set()
    for start in list(before):
        path, branches = [start], [iter(before.get(start, ()))]
        while path:
            number = next(branches[-1], None)
            if number is None:
                done.add(path.pop())
                branches.pop()
            elif number in path:
                return path[path.index(number) :]
            elif number not in done:
                path.append(number)
                branches.append(iter(before.get(number, ())))
    return []


@pytest.mark.timeout(300)
@pytest.mark.ddl(TABLE, INDEX)
@pytest.mark.parametrize(("seed", "optimistic"), [(0, 0.0), (1, 0.0), (2, 0.5), (3, 1.0)])
def test_some_order_explains_what_every_transaction_saw(
    database: Database, seed: int, optimistic: float
) -> None:
    started = threading.Barrier(THREADS)
    with ThreadPoolExecutor(THREADS) as running:
        seeds = [seed * 1_000 + number for number in range(THREADS)]
        parts = running.map(lambda each: run_thread(database, each, started, optimistic), seeds)
        history = [each for part in parts for each in part]
    history.sort(key=lambda each: (each.at is None, each.at))
    assert len({each.at for each in history}) == len(history) == THREADS * TRANSACTIONS
    lists = replay(history)
    with database.snapshot() as snapshot:
        stored = {row[0]: parse(row[1]) for row in snapshot.execute_sql("SELECT K, L FROM Lists")}
    assert stored == lists
    assert not find_circle(dependencies(history, lists))


def test_a_lost_append_and_a_circle_are_found() -> None:
    first = History(1, [(range(1), {})], {0})
    second = History(2, [(range(1), {})], {0})
    with pytest.raises(AssertionError, match="transaction 2 saw"):
        replay([first, second])
    skew = [History(1, [(range(1), {})], {1}), History(2, [(range(1, 2), {})], {0})]
    assert set(find_circle(dependencies(skew, {0: (2,), 1: (1,)}))) == {1, 2}
    assert not find_circle(dependencies(skew[:1], {1: (1,)}))
