"""Random tables, writes and reads at random timestamps, compared with a simple model in memory.

``DIFFERENTIAL_STEPS`` steps a seed (60), ``DIFFERENTIAL_SEEDS`` seeds (3), the first of which is
``DIFFERENTIAL_SEED`` (a failure tells the seed in the test's name).
"""

from __future__ import annotations

import datetime
import os
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from fixtures.differential import (
    INT64,
    Column,
    Condition,
    Draft,
    Key,
    Row,
    State,
    Table,
    World,
    random_condition,
    random_tables,
)
from google.api_core import exceptions
from google.cloud.spanner_v1 import KeyRange, KeySet
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.instance import Instance

STEPS = int(os.environ.get("DIFFERENTIAL_STEPS", "60"))
FIRST = int(os.environ.get("DIFFERENTIAL_SEED", "1"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("DIFFERENTIAL_SEEDS", "3")))

Client = Any  # a Transaction, Snapshot or Batch of the client, which has no types
MICROSECOND = datetime.timedelta(microseconds=1)


class DroppedError(Exception):
    """A transaction that is rolled back on purpose."""


class DifferentialRun:
    """One database and its model, changed and asked together."""

    def __init__(self, database: Database, tables: list[Table], rng: Random) -> None:
        self.database = database
        self.rng = rng
        self.world = World(tables)

    def table(self) -> Table:
        return self.rng.choice(self.world.tables)

    def key(self, table: Table, rows: State) -> Key | None:
        keys = list(rows[table.name])
        return self.rng.choice(keys) if keys else None

    def new_row(self, table: Table, rows: State) -> Row | None:
        """A row that fits below a parent; None without one."""
        above = self.key(table.parent, rows) if table.parent else ()
        return None if above is None else table.row(self.rng, above)

    # Mutations.

    def mutations(self) -> None:
        """A batch of valid mutations, at times with one at its end that must be refused."""
        draft = self.world.draft()
        calls: list[Callable[[Client], None]] = []
        for _ in range(self.rng.randint(1, 6)):
            call = self.mutation(draft)
            if call is not None:
                calls.append(call)
        expected = self.random_refused_mutation(draft, calls) if self.rng.random() < 0.2 else None
        if not calls:
            return
        if expected is not None:
            with pytest.raises(expected):
                self.commit_calls(calls)
            return
        self.world.commit(draft, self.commit_calls(calls))

    def commit_calls(self, calls: list[Callable[[Client], None]]) -> datetime.datetime:
        """Commits mutations together; when it was."""
        with self.database.batch() as batch:
            for call in calls:
                call(batch)
        moment: datetime.datetime = batch.committed
        return moment

    def mutation(self, draft: Draft) -> Callable[[Client], None] | None:
        table = self.table()
        row = self.new_row(table, draft.rows)
        existing_key = self.key(table, draft.rows)
        action = self.rng.choice(["insert", "update", "insert_or_update", "replace", "delete"])
        if action == "delete":
            return self.deletion(table, draft)
        if action == "update":
            if existing_key is None:
                return None
            values = self.some_values(table)
            draft.update(table, existing_key, values, upsert=False)
            return write_values("update", table, existing_key, values)
        if row is None:
            return None
        if action == "insert":
            if row[: len(table.keys)] in draft.rows[table.name]:
                return None
            draft.insert(table, row)
        elif action == "replace":
            draft.replace(table, row)
        else:
            draft.insert(table, row, over=True)
        return lambda client: getattr(client, action)(
            table.name, table.names, [table.encode_row(row)]
        )

    def some_values(self, table: Table) -> dict[str, Any]:
        chosen = [c for c in table.others if self.rng.random() < 0.5]
        return {c.name: c.value(self.rng) for c in chosen}

    def deletion(self, table: Table, draft: Draft) -> Callable[[Client], None]:
        keyset, chosen = self.keyset(table, draft.rows, all_=False)
        for key in chosen:
            draft.delete(table, key)
        return lambda client: client.delete(table.name, keyset)

    def random_refused_mutation(
        self, draft: Draft, calls: list[Callable[[Client], None]]
    ) -> type[Exception] | None:
        table = self.table()
        existing_key = self.key(table, draft.rows)
        row = self.new_row(table, draft.rows)
        if existing_key is not None and self.rng.random() < 0.5:
            again = table.row(self.rng, existing_key)
            calls.append(lambda c: c.insert(table.name, table.names, [table.encode_row(again)]))
            return exceptions.AlreadyExists
        if row is not None and row[: len(table.keys)] not in draft.rows[table.name]:
            calls.append(lambda c: c.update(table.name, table.names, [table.encode_row(row)]))
            return exceptions.NotFound
        return None

    # DML.

    def transaction(self) -> None:
        """Some DML, with reads of its own writes; committed or rolled back."""
        draft = self.world.draft()
        keep = self.rng.random() < 0.8

        def work(transaction: Client) -> Client:
            # A first statement that is refused leaves the client without a transaction.
            transaction.begin()
            for _ in range(self.rng.randint(1, 3)):
                self.statement(transaction, draft)
                if self.rng.random() < 0.5:
                    self.query(transaction, draft.rows)
            if not keep:
                raise DroppedError
            return transaction

        try:
            transaction = self.database.run_in_transaction(work)
        except DroppedError:
            return
        self.world.commit(draft, transaction.committed)

    def statement(self, transaction: Client, draft: Draft) -> None:
        table = self.table()
        action = self.rng.choice(["insert", "insert", "upsert", "update", "delete"])
        if action in {"insert", "upsert"}:
            self.insert_row(transaction, draft, table, upsert=action == "upsert")
            return
        condition = self.condition(table, draft.rows)
        chosen = [k for k, r in draft.rows[table.name].items() if condition.holds(r)]
        params, types = dict(condition.params), dict(condition.types)
        if action == "delete":
            sql = f"DELETE FROM {table.name} WHERE {condition.sql}"
            for key in chosen:
                draft.delete(table, key)
        else:
            if not table.others:
                return
            column = self.rng.choice(table.others)
            value = column.value(self.rng)
            sql = f"UPDATE {table.name} SET {column.name} = @new WHERE {condition.sql}"
            params["new"], types["new"] = column.kind.encode_value(value), column.kind.param
            for key in chosen:
                draft.update(table, key, {column.name: value}, upsert=False)
        assert transaction.execute_update(sql, params=params, param_types=types) == len(chosen)

    def insert_row(self, transaction: Client, draft: Draft, table: Table, *, upsert: bool) -> None:
        row = self.new_row(table, draft.rows)
        if row is None:
            return
        word = "INSERT OR UPDATE" if upsert else "INSERT"
        marks = ", ".join(f"@{name}" for name in table.names)
        sql = f"{word} INTO {table.name} ({', '.join(table.names)}) VALUES ({marks})"
        params = dict(zip(table.names, table.encode_row(row), strict=True))
        types = {column.name: column.kind.param for column in table.columns}
        if row[: len(table.keys)] in draft.rows[table.name] and not upsert:
            with pytest.raises(exceptions.AlreadyExists):
                transaction.execute_update(sql, params=params, param_types=types)
            # From here on the transaction answers with the same refusal.
            raise DroppedError
        draft.insert(table, row, over=upsert)
        assert transaction.execute_update(sql, params=params, param_types=types) == 1

    # Reads.

    def reads(self) -> None:
        """Reads and queries of one snapshot: strong, or at a moment between two commits."""
        if not self.world.history:
            return
        moment = self.moment()
        options = {} if moment is None else {"read_timestamp": moment}
        rows = self.world.rows if moment is None else self.world.state_at(moment)
        with self.database.snapshot(multi_use=True, **options) as snapshot:
            for _ in range(self.rng.randint(1, 4)):
                self.rng.choice(
                    [self.read, self.query, self.compare_grouped_query, self.compare_joined_query]
                )(snapshot, rows)

    def moment(self) -> datetime.datetime | None:
        if self.rng.random() < 0.3:
            return None
        place = self.rng.randrange(len(self.world.history))
        start = self.world.history[place][0]
        if place + 1 == len(self.world.history):
            return start
        span = (self.world.history[place + 1][0] - start) // MICROSECOND
        return start + self.rng.randrange(max(span, 1)) * MICROSECOND

    def keyset(self, table: Table, rows: State, *, all_: bool = True) -> tuple[KeySet, list[Key]]:
        """Keys, a range or all, and the keys of rows that it names, in order."""
        all_keys = list(rows[table.name])
        choice = self.rng.random()
        if all_ and choice < 0.3:
            return KeySet(all_=True), table.sort_keys(all_keys)
        if choice < 0.65:
            some = {key for key in all_keys if self.rng.random() < 0.3}
            some.add(table.row(self.rng)[: len(table.keys)])
            return KeySet(keys=[table.encode_row(key) for key in some]), table.sort_keys(
                some & set(all_keys)
            )
        # Deletes take the rows below one prefix of a key; other ranges of theirs are UNIMPLEMENTED.
        ends = (
            [self.random_bound(table, all_keys)] * 2
            if not all_
            else [self.random_bound(table, all_keys) for _ in range(2)]
        )
        low, high = sorted(ends, key=lambda key: 0) if table.compare(*ends) <= 0 else ends[::-1]
        first, last = (
            self.rng.choice(["start_open", "start_closed"]),
            self.rng.choice(["end_open", "end_closed"]),
        )
        bounds = {first: table.encode_row(low), last: table.encode_row(high)}
        chosen = [
            key
            for key in all_keys
            if table.compare(key, low) >= (first == "start_open")
            and table.compare(key, high) <= -(last == "end_open")
        ]
        return KeySet(ranges=[KeyRange(**bounds)]), table.sort_keys(chosen)

    def random_bound(self, table: Table, all_keys: list[Key]) -> Key:
        key = self.rng.choice(all_keys) if all_keys else table.row(self.rng)[: len(table.keys)]
        return key[: self.rng.randint(1, len(table.keys))]

    def read(self, client: Client, rows: State) -> None:
        table = self.table()
        keyset, chosen = self.keyset(table, rows)
        limit = self.rng.choice([0, 0, 2])
        answer = client.read(table.name, table.names, keyset, limit=limit)
        expected = [rows[table.name][key] for key in chosen]
        assert [table.decode_row(row) for row in answer] == (
            expected[:limit] if limit else expected
        )

    def condition(self, table: Table, rows: State) -> Condition:
        key = self.key(table, rows)
        return random_condition(self.rng, table, rows[table.name][key] if key else None)

    def query(self, client: Client, rows: State) -> None:
        table = self.table()
        condition = self.condition(table, rows)
        order = ", ".join(f"{c.name}{' DESC' if c.down else ''}" for c in table.keys)
        sql = f"SELECT * FROM {table.name} WHERE {condition.sql} ORDER BY {order}"
        answers = [table.decode_row(row) for row in ask(client, sql, condition)]
        kept = [key for key, row in rows[table.name].items() if condition.holds(row)]
        assert answers == [rows[table.name][key] for key in table.sort_keys(kept)]

    def compare_grouped_query(self, client: Client, rows: State) -> None:
        """Counts, a sum and extremes by one column."""
        table = self.table()
        column = self.rng.choice([c for c in table.columns if c.kind.comparable])
        numbers: list[Column | None] = [c for c in table.columns if c.kind is INT64]
        summed = self.rng.choice(numbers or [None])
        condition = self.condition(table, rows)
        total = f"SUM(CAST({summed.name} AS NUMERIC))" if summed else "NULL"
        sql = (
            f"SELECT {column.name}, COUNT(*), COUNT({column.name}), {total} FROM {table.name}"
            f" WHERE {condition.sql} GROUP BY {column.name}"
        )
        answers = {
            (column.kind.decode_value(value), count, present, None if sum_ is None else int(sum_))
            for value, count, present, sum_ in ask(client, sql, condition)
        }
        kept = [row for row in rows[table.name].values() if condition.holds(row)]
        assert answers == groups(table, kept, column, summed)

    def compare_joined_query(self, client: Client, rows: State) -> None:
        """Parents with their children, also those without."""
        child = next(table for table in self.world.tables if table.parent)
        parent = child.parent
        assert parent is not None
        equal = " AND ".join(
            f"(p.{c.name} = c.{c.name} OR p.{c.name} IS NULL AND c.{c.name} IS NULL)"
            for c in parent.keys
        )
        last = child.keys[-1]
        sql = (
            f"SELECT {', '.join('p.' + c.name for c in parent.keys)}, c.{last.name}"
            f" FROM {parent.name} p LEFT JOIN {child.name} c ON {equal}"
        )
        kinds = [c.kind for c in parent.keys] + [last.kind]
        answers = [
            tuple(k.decode_value(v) for k, v in zip(kinds, row, strict=True))
            for row in client.execute_sql(sql)
        ]
        expected: list[Row] = []
        for key in rows[parent.name]:
            below = [k for k in rows[child.name] if k[: len(key)] == key]
            expected += below or [(*key, None)]
        assert Counter(answers) == Counter(expected)


def groups(table: Table, rows: list[Row], column: Column, summed: Column | None) -> set[Row]:
    """What GROUP BY must give."""
    names = table.names
    gathered: dict[Any, list[Row]] = {}
    for row in rows:
        gathered.setdefault(row[names.index(column.name)], []).append(row)
    answers = set()
    for value, members in gathered.items():
        values = [m[names.index(summed.name)] for m in members] if summed else []
        numbers = [n for n in values if n is not None]
        present = 0 if value is None else len(members)
        answers.add((value, len(members), present, sum(numbers) if numbers else None))
    return answers


def write_values(
    action: str, table: Table, key: Key, values: dict[str, Any]
) -> Callable[[Client], None]:
    """A mutation of some columns of a row."""
    kinds = {column.name: column.kind for column in table.columns}
    names = [column.name for column in table.keys] + list(values)
    row = table.encode_row(key) + [
        kinds[name].encode_value(value) for name, value in values.items()
    ]
    return lambda client: getattr(client, action)(table.name, names, [row])


def ask(client: Client, sql: str, condition: Condition) -> list[Row]:
    answer = client.execute_sql(
        sql, params=condition.params or None, param_types=condition.types or None
    )
    return [tuple(row) for row in answer]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_written_is_what_is_read(instance: Instance, seed: int) -> None:
    rng = Random(seed)
    tables = random_tables(rng)
    database = instance.database(
        f"model-{os.getpid()}-{seed}", ddl_statements=[table.ddl() for table in tables]
    )
    database.create().result(60)
    run = DifferentialRun(database, tables, rng)
    steps = [run.mutations, run.mutations, run.transaction, run.reads, run.reads]
    for _ in range(STEPS):
        rng.choice(steps)()
    database.drop()
