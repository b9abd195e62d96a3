"""Whole runs: this project's watcher is right, and a poller that loses rows is found."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.presets import PRESETS
from conformance.recording import Promises
from conformance.runs import judge_again, run_in_process
from conformance.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
POLLER = f"{sys.executable} {ROOT}/examples/naive_poller.py {{database}} {{tables}} {{state}}"
BY_HAND = Settings(
    POLLER,
    prepare="poll",
    promises=Promises(every_version=False, late_seconds_max=0),
    blows=(),
    seconds=3,
    settle_seconds=5,
)
PATIENT = 120.0
"""Seconds, on a busy machine."""


@pytest.mark.parametrize(
    ("name", "seed", "churn"),
    [("watch-poll", 6, True), ("watch-change-stream", 4, False), ("watch-push", 3, True)],
)
def test_the_watcher_is_right_whatever_strikes(
    tmp_path: Path, name: str, seed: int, churn: bool
) -> None:
    settings = PRESETS[name].settings
    report = run_in_process(
        replace(
            settings,
            preset=name,
            seed=seed,
            churn=churn,
            seconds=4,
            settle_seconds=PATIENT,
            stop_seconds=PATIENT,
            promises=replace(settings.promises, late_seconds_max=0),
        ),
        tmp_path / "run",
    )
    assert report.findings == []
    assert report.unexplained == 0
    assert (report.churn is not None) == churn
    assert report.commits > 20
    assert report.lines >= (report.changes if settings.promises.every_version else 1)
    assert report.blows.keys() & {"kill", "stop", "trouble", "restart_server"}
    assert report.latency is not None


def test_a_poller_that_trusts_its_own_clock_loses_rows_and_they_are_found(tmp_path: Path) -> None:
    found = []
    for seed in range(1, 11):
        folder = tmp_path / f"{seed}"
        report = run_in_process(replace(BY_HAND, seed=seed), folder)
        found = [finding for finding in report.findings if finding.kind == "lost"]
        assert len(found) == len(report.findings)
        if found:
            break
    assert found
    again = judge_again(folder)
    assert again == report
    commits = (folder / "commits.jsonl").read_text().splitlines()
    assert len(commits) == report.commits
    assert len((folder / "lines.jsonl").read_text().splitlines()) == report.lines
    assert json.loads((folder / "settings.json").read_text())["seed"] == seed


def test_a_poller_that_reads_at_a_timestamp_loses_nothing(tmp_path: Path) -> None:
    settings = replace(
        BY_HAND, command=f"{POLLER} windows", blows=("kill", "freeze"), settle_seconds=PATIENT
    )
    assert run_in_process(settings, tmp_path / "run").findings == []


ENDS = "import sys; sys.exit(3)"
IGNORES_SIGTERM = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('null', flush=True);"
    " time.sleep(600)"
)


@pytest.mark.parametrize(
    ("program", "kinds"),
    [
        (ENDS, {"lost", "ended"}),
        (IGNORES_SIGTERM, {"lost", "unreadable", "hung"}),
    ],
)
def test_a_command_that_is_no_such_system_is_found(
    tmp_path: Path, program: str, kinds: set[str]
) -> None:
    settings = Settings(
        f'{sys.executable} -c "{program}"',
        blows=(),
        seconds=1,
        settle_seconds=0.5,
        stop_seconds=0.5,
        start_seconds=2,
    )
    report = run_in_process(settings, tmp_path / "run")
    assert {finding.kind for finding in report.findings} == kinds
