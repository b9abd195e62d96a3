"""Delivery under faults: a short version of ``make soak``, with fixed seeds. How many lines a poll
gives depends on its windows, and on the machine with them: what is lost is the judge's to say."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.truth import Commit, Truth, Write
from nemesis.files import FileLine, find_problems, run_files
from nemesis.outsiders import OUTSIDERS
from nemesis.replica import run_replica
from nemesis.run import Capture, PartitionMode, run
from nemesis.shared import run_shared
from spanner_schema.model.schema import Dialect


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


@pytest.mark.parametrize("to", list(OUTSIDERS))
def test_exact_cuts_of_a_replica_are_exact_whatever_strikes(tmp_path: Path, to: str) -> None:
    report = run_replica(tmp_path, 3, 4, to)
    assert report.problems == []
    assert report.commits > 20
    assert report.fingerprints > 0


@pytest.mark.parametrize("capture", ["poll", "change-stream"])
def test_files_have_every_change_once_whatever_strikes(tmp_path: Path, capture: Capture) -> None:
    report = run_files(tmp_path, 4, 4, capture)
    assert report.problems == []
    assert report.commits > 20
    assert report.lines > 0


def test_the_judge_of_files_finds_what_is_wrong() -> None:
    row, truth = ("Events", ("a",)), Truth()
    for at, version in ((10, "first"), (20, "second"), (30, None)):
        truth.add(Commit(at, (Write(row, version),)))
    right = [FileLine(row, 10, "first"), FileLine(row, 20, "second"), FileLine(row, 30, None)]
    for capture in ("poll", "change-stream"):
        assert find_problems(right, truth, capture) == []
        (doubled,) = find_problems([right[0], *right], truth, capture)
        assert "is there 2 times" in doubled
        (other,) = find_problems([FileLine(row, 10, "other"), *right[1:]], truth, capture)
        assert "'other' was never written" in other
        (back,) = find_problems([right[1], right[0], right[2]], truth, capture)
        assert "10 after 20" in back
    (lost,) = find_problems(right[1:], truth, "change-stream")
    assert "at 10 is lost" in lost


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
