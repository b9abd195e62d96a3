"""Random schemas, random writes and random reads at random times, against a model in memory.

The model keeps every state of the table, and orders keys by Spanner's rules on its own.
"""

from __future__ import annotations

import functools
import math
import random
from dataclasses import dataclass, field

import pytest
from fixtures.engine_world import (
    INSERT,
    REPLACE,
    UPDATE,
    UPSERT,
    Row,
    exact_bound,
    open_database,
    read,
)

from emulator.engine.database import Database
from emulator.errors import SpannerError
from emulator.values.requests import KeyDelete, KeyRange, KeySet, Mutation, RowWrite, Stored

STEPS = 150

VALUES: dict[str, list[Stored]] = {
    "INT64": [None, -3, 0, 1, 2, 2**62],
    "STRING(MAX)": [None, "", "a", "B", "ä", "a\0b"],
    "BYTES(MAX)": [None, b"", b"\0", b"a", b"\xff"],
    "FLOAT64": [None, "NaN", -math.inf, -1.5, 0.0, 2.5, math.inf],
    "BOOL": [None, 0, 1],
    "DATE": [None, "1999-12-31", "2024-02-29"],
}


@dataclass(frozen=True)
class ModelKeyPart:
    """A key column."""

    name: str
    type: str
    descending: bool


@dataclass
class RowsModel:
    """A table as a dictionary, and each state it had."""

    parts: list[ModelKeyPart]
    index_part: ModelKeyPart
    rows: dict[Row, tuple[Stored, Stored]] = field(default_factory=dict)
    states: list[tuple[int, dict[Row, tuple[Stored, Stored]]]] = field(default_factory=list)

    def rows_at(self, micros: int) -> dict[Row, tuple[Stored, Stored]]:
        visible = [rows for when, rows in self.states if when <= micros]
        return visible[-1] if visible else {}


def compare_part(part: ModelKeyPart, left: Stored, right: Stored) -> int:
    """NULL first, then NaN, then by value; reversed for DESC."""
    floating = part.type.startswith("FLOAT")
    ranks = [0 if v is None else 1 if floating and v == "NaN" else 2 for v in (left, right)]
    if ranks[0] != ranks[1] or ranks[0] < 2:
        order = ranks[0] - ranks[1]
    else:
        order = (left > right) - (left < right)  # type: ignore[operator]
    return -order if part.descending else order


def compare(parts: list[ModelKeyPart], left: Row, right: Row) -> int:
    """Lexicographic, as far as both go."""
    pairs = zip(parts, left, right, strict=False)
    orders = (compare_part(part, a, b) for part, a, b in pairs)
    return next((order for order in orders if order), 0)


def sort_rows(parts: list[ModelKeyPart], rows: list[Row]) -> list[Row]:
    """Rows that begin with their key, in key order."""

    def order(left: Row, right: Row) -> int:
        return compare(parts, left, right)

    return sorted(rows, key=functools.cmp_to_key(order))


def is_inside(parts: list[ModelKeyPart], key: Row, key_range: KeyRange) -> bool:
    """Whether a key lies between two prefixes."""
    low, high = compare(parts, key, key_range.start), compare(parts, key, key_range.end)
    above = low > 0 or (low == 0 and key_range.start_closed)
    below = high < 0 or (high == 0 and key_range.end_closed)
    return above and below


def select_rows(parts: list[ModelKeyPart], key: Row, keys: KeySet) -> bool:
    """Whether a key set contains a key."""
    return keys.all or key in keys.keys or any(is_inside(parts, key, r) for r in keys.ranges)


def random_key(parts: list[ModelKeyPart], choice: random.Random, length: int | None = None) -> Row:
    count = len(parts) if length is None else length
    return tuple(choice.choice(VALUES[part.type]) for part in parts[:count])


def random_keys(parts: list[ModelKeyPart], choice: random.Random) -> KeySet:
    if choice.random() < 0.1:
        return KeySet(all=True)
    points = tuple(random_key(parts, choice) for _ in range(choice.randrange(4)))
    ranges = tuple(
        KeyRange(
            random_key(parts, choice, choice.randrange(len(parts) + 1)),
            random_key(parts, choice, choice.randrange(len(parts) + 1)),
            choice.random() < 0.5,
            choice.random() < 0.5,
        )
        for _ in range(choice.randrange(3))
    )
    return KeySet(keys=points, ranges=ranges)


def random_mutation(model: RowsModel, choice: random.Random) -> Mutation:
    if choice.random() < 0.15:
        return KeyDelete("T", random_keys(model.parts, choice))
    kind = choice.choice([INSERT, UPDATE, UPSERT, UPSERT, REPLACE])
    columns = [part.name for part in model.parts] + choice.choice([["V"], ["W"], ["V", "W"], []])
    width = len(columns) - len(model.parts)
    rows = []
    for _ in range(choice.randrange(1, 4)):
        values = (choice.choice(VALUES[model.index_part.type]), choice.randrange(9))
        row_values = [
            values[0] if name == "V" else values[1] for name in columns[len(model.parts) :]
        ]
        rows.append(random_key(model.parts, choice) + tuple(row_values[:width]))
    return RowWrite(kind, "T", tuple(columns), rows)


def expect_rows(
    model: RowsModel, mutations: list[Mutation]
) -> dict[Row, tuple[Stored, Stored]] | str:
    """The rows after a commit, or the name of the error."""
    rows = dict(model.rows)
    count = len(model.parts)
    for mutation in mutations:
        if isinstance(mutation, KeyDelete):
            rows = {k: v for k, v in rows.items() if not select_rows(model.parts, k, mutation.keys)}
            continue
        for row in mutation.rows:
            key, new_values = (
                row[:count],
                dict(zip(mutation.columns[count:], row[count:], strict=True)),
            )
            if mutation.kind is INSERT and key in rows:
                return "ALREADY_EXISTS"
            if mutation.kind is UPDATE and key not in rows:
                return "NOT_FOUND"
            old = (None, None) if mutation.kind is REPLACE else rows.get(key, (None, None))
            rows[key] = (new_values.get("V", old[0]), new_values.get("W", old[1]))
    return rows


def commit(database: Database, model: RowsModel, mutations: list[Mutation]) -> None:
    """Commits to both; they must agree on the outcome."""
    outcome = expect_rows(model, mutations)
    try:
        committed = database.write(mutations)
    except SpannerError as error:
        assert outcome == error.code.name, f"{mutations}: {error}"  # noqa: PT017 - both must agree
        return
    assert not isinstance(outcome, str), f"{mutations} must fail with {outcome}"
    model.rows = outcome
    model.states.append((committed.commit_timestamp_micros, outcome))


def check_read(database: Database, model: RowsModel, choice: random.Random) -> None:
    """A read by key, at a random time, in key order."""
    micros = choice.choice(model.states)[0] + choice.randrange(2) if model.states else 0
    keys = random_keys(model.parts, choice)
    limit = choice.choice([0, 0, 1, 3])
    bound = (
        exact_bound(micros)
        if micros
        else exact_bound(database.read_only(exact_bound(1)).read_timestamp_micros)
    )
    names = " ".join(part.name for part in model.parts) + " V W"
    rows_read = read(database, "T", names, bound, keys, limit=limit)
    rows = [k + v for k, v in model.rows_at(micros).items() if select_rows(model.parts, k, keys)]
    rows = sort_rows(model.parts, rows)
    assert rows_read == (rows[:limit] if limit else rows), f"{keys} at {micros}"


def check_index_read(database: Database, model: RowsModel, choice: random.Random) -> None:
    """A read through the index of V: by ranges of V, then in the order of the key."""
    if not model.states:
        return
    micros = choice.choice(model.states)[0]
    own = [part for part in model.parts if part.name != "V"]
    parts = [model.index_part, *own]
    values = VALUES[model.index_part.type]
    keys = KeySet(
        keys=tuple({(choice.choice(values),) for _ in range(choice.randrange(3))}),
        ranges=(KeyRange((choice.choice(values),), (choice.choice(values),), True, True),),
    )
    names = "V " + " ".join(part.name for part in own)
    rows_read = read(database, "T", names, exact_bound(micros), keys, index="ByV")
    rows = [(v[0], *k) for k, v in model.rows_at(micros).items()]
    expected_rows = [
        row
        for row in rows
        if row[:1] in keys.keys or any(is_inside(parts, row, each) for each in keys.ranges)
    ]
    assert rows_read == sort_rows(parts, expected_rows), f"{keys} at {micros}"


@pytest.mark.parametrize("seed", range(12))
def test_the_engine_and_the_model_agree(seed: int) -> None:
    choice = random.Random(seed)
    kinds = sorted(VALUES)
    parts = [
        ModelKeyPart(f"K{n}", choice.choice(kinds), choice.random() < 0.4)
        for n in range(choice.randrange(1, 4))
    ]
    index_part = ModelKeyPart("V", choice.choice(kinds), choice.random() < 0.4)
    columns = ", ".join(f"{part.name} {part.type}" for part in [*parts, index_part])
    key = ", ".join(part.name + (" DESC" if part.descending else "") for part in parts)
    ddl = (
        f"CREATE TABLE T ({columns}, W INT64) PRIMARY KEY ({key})",
        f"CREATE INDEX ByV ON T (V{' DESC' if index_part.descending else ''})",
    )
    model = RowsModel(parts, index_part)
    with open_database(*ddl) as database:
        for _ in range(STEPS):
            count = choice.choice([1, 1, 1, 2, 3])
            commit(database, model, [random_mutation(model, choice) for _ in range(count)])
            if model.states:
                check_read(database, model, choice)
                check_index_read(database, model, choice)
    assert len(model.states) > STEPS / 5
