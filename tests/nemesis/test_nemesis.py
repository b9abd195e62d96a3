"""Delivery under faults: a short version of ``make soak``, with fixed seeds. How many lines a poll
gives depends on its windows, and on the machine with them: what is lost is the judge's to say."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddl.model.schema import Dialect
from nemesis.replica import run_replica
from nemesis.run import PartitionMode, run
from nemesis.shared import run_shared


def test_everything_is_delivered_whatever_strikes(tmp_path: Path) -> None:
    report = run(tmp_path, 2, seconds=4)
    assert report.problems == []
    assert report.commits > 20
    assert report.lines > 0


@pytest.mark.parametrize("dialect", list(Dialect))
def test_instances_that_share_a_consumer_deliver_everything_whatever_strikes(
    tmp_path: Path, dialect: Dialect
) -> None:
    report = run_shared(tmp_path, 2, seconds=4, dialect=dialect)
    assert report.problems == []
    assert report.commits > 20
    assert report.lines > 0


def test_exact_cuts_of_a_replica_are_exact_whatever_strikes(tmp_path: Path) -> None:
    report = run_replica(tmp_path, 3, seconds=4)
    assert report.problems == []
    assert report.commits > 20
    assert report.fingerprints > 0


def test_nothing_comes_twice_when_nothing_strikes(tmp_path: Path) -> None:
    report = run(tmp_path, 7, seconds=3, strikes=False)
    assert report.problems == []
    assert report.lines > 0


@pytest.mark.parametrize(("seed", "mode"), [(11, "IMMUTABLE_KEY_RANGE"), (14, "MUTABLE_KEY_RANGE")])
def test_a_change_stream_delivers_every_version_whatever_strikes(
    tmp_path: Path, seed: int, mode: PartitionMode
) -> None:
    report = run(tmp_path, seed, seconds=4, capture="change-stream", mode=mode)
    assert report.problems == []
    assert report.commits > 20
    assert report.lines > 20


@pytest.mark.parametrize("mode", ["IMMUTABLE_KEY_RANGE", "MUTABLE_KEY_RANGE"])
def test_a_change_stream_repeats_nothing_when_nothing_strikes(
    tmp_path: Path, mode: PartitionMode
) -> None:
    report = run(tmp_path, 13, seconds=3, strikes=False, capture="change-stream", mode=mode)
    assert report.problems == []
    assert report.lines > 20


@pytest.mark.parametrize(("seed", "mode"), [(21, "IMMUTABLE_KEY_RANGE"), (22, "MUTABLE_KEY_RANGE")])
def test_the_functions_of_placements_deliver_every_version_whatever_strikes(
    tmp_path: Path, seed: int, mode: PartitionMode
) -> None:
    report = run(tmp_path, seed, seconds=4, capture="change-stream", mode=mode, placed=True)
    assert report.problems == []
    assert report.commits > 20
    assert report.lines > 20
    assert report.struck["moved a row"] > 5
