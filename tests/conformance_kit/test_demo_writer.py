"""The writer's plan of writes: what makes its log a ground truth."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from conformance.demo.settings import DemoSettings
from conformance.demo.writer import ROWS_A_COMMIT, THREADS, generate_batches

SETTINGS = DemoSettings(directory=Path(), server="", rows=1_000)


def test_every_write_has_a_name_of_its_own_and_a_key_once() -> None:
    plan = list(islice(generate_batches(SETTINGS), 200))
    names = [name for batch in plan for name in batch.versions]
    assert len(names) == len(set(names)) == 200 * ROWS_A_COMMIT
    assert all(len(set(batch.keys)) == ROWS_A_COMMIT for batch in plan)


def test_batches_that_can_be_under_way_together_share_no_key() -> None:
    plan = list(islice(generate_batches(SETTINGS), 500))
    for number in range(len(plan) - THREADS):
        keys = [key for batch in plan[number : number + THREADS + 1] for key in batch.keys]
        assert len(keys) == len(set(keys))


def test_inserts_and_updates_go_by_mutations_and_by_dml_alike() -> None:
    kinds = {(batch.insert, batch.by_dml) for batch in islice(generate_batches(SETTINGS), 8)}
    assert kinds == {(True, True), (True, False), (False, True), (False, False)}


def test_only_rows_that_exist_are_updated_and_only_new_ones_inserted() -> None:
    existing = set(range(SETTINGS.rows))
    for batch in islice(generate_batches(SETTINGS), 300):
        if batch.insert:
            assert existing.isdisjoint(batch.keys)
            existing |= set(batch.keys)
        else:
            assert existing.issuperset(batch.keys)


def test_the_same_seed_plans_the_same_writes() -> None:
    assert list(islice(generate_batches(SETTINGS), 50)) == list(
        islice(generate_batches(SETTINGS), 50)
    )
