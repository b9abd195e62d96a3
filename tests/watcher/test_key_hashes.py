"""Keys as numbers: the same for keys that Spanner takes for the same, different for all others."""

from __future__ import annotations

import os
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from fixtures.copied_tables import CopiedTable, copied_tables, rows_of
from hypothesis import given, settings
from hypothesis import strategies as st

from watcher.model.errors import ReplicaError
from watcher.replica.keys.hashes import PRIME, draw_points, hash_keys, multiply_modulo

EXAMPLES = int(os.environ.get("COPY_EXAMPLES", "50"))
POINTS = draw_points()


def hash_all(rows: pa.RecordBatch | pa.Table) -> list[tuple[int, int]]:
    first, second = hash_keys(rows, POINTS)
    return list(zip(first.tolist(), second.tolist(), strict=True))


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_keys_that_spanner_takes_for_the_same_have_one_hash(data: st.DataObject) -> None:
    table: CopiedTable = data.draw(copied_tables())
    rows: list[dict[str, Any]] = data.draw(rows_of(table, 1))
    hashes = hash_all(table.make_rows(rows).select(table.key))
    identities = [table.identify(row) for row in rows]
    for one, its in zip(identities, hashes, strict=True):
        for other, of_other in zip(identities, hashes, strict=True):
            assert (one == other) == (its == of_other), (one, other)


LONG = st.binary(max_size=9).map(lambda end: bytes(600) + end)
TEXTS = st.none() | st.binary(max_size=12) | LONG


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=6))
def test_no_text_runs_into_the_next_one(keys: list[tuple[bytes | None, bytes | None]]) -> None:
    columns = [pa.array(each, pa.binary()) for each in zip(*keys, strict=True)]
    batch = pa.RecordBatch.from_arrays(columns, ["a", "b"])
    hashes = hash_all(batch)
    assert len(set(hashes)) == len(set(keys))
    assert hash_all(batch.slice(1)) == hashes[1:]
    assert [hash_all(batch.slice(n, 1))[0] for n in range(len(keys))] == hashes


def test_many_rows_are_hashed_as_one() -> None:
    numbers = pa.array(range(40_000))
    texts = pa.array([f"{n:x}" * (n % 5) for n in range(40_000)])
    table = pa.table({"a": numbers, "b": texts})
    hashes = hash_all(table)
    assert len(set(hashes)) == 40_000
    assert hash_all(table.slice(39_999)) == hashes[-1:]


@given(st.lists(st.integers(0, PRIME - 1), min_size=1), st.integers(1, PRIME - 1))
def test_products_are_those_of_whole_numbers(values: list[int], point: int) -> None:
    products = multiply_modulo(pa.array(values, pa.uint64()).to_numpy(), point)
    assert products.tolist() == [value * point % PRIME for value in values]


def test_a_chance_of_collisions_that_the_documentation_states() -> None:
    """10^9 keys of 100 words, which are pairs of less than half their square."""
    pairs, words = Fraction(10**18, 2), 100
    assert pairs * Fraction(words, 2**61) ** 2 < Fraction(1, 10**15)


def test_a_type_that_no_key_has_is_refused() -> None:
    with pytest.raises(ReplicaError, match="list"):
        hash_keys(pa.table({"a": pa.array([[1]])}), POINTS)
