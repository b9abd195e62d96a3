"""``spanner-watcher conformance``: what it refuses, and what it prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fixtures.commands import run_command

from conformance.churn import Churn, ChurnReport
from conformance.judges.arrivals import Latency
from conformance.recording import Finding
from conformance.run import Report
from conformance.runs import describe_all, describe_run, make_json
from conformance.settings import Settings


def refuse(*arguments: str) -> tuple[int, str]:
    done = run_command("conformance", *arguments)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "nothing to judge: use --against"),
        (("--against", "cat", "--format", "xml"), "--format: unknown 'xml'"),
        (("--against", "cat", "--blow", "frown"), "--blow: unknown 'frown'"),
        (("--against", "cat", "--value-capture", "ALL"), "--value-capture: unknown 'ALL'"),
        (("--against", "'"), "cannot be split into words"),
        (("--against", " "), "is empty"),
        (("--against", "/no/such/program"), "cannot be started"),
        (("--judge", "/no/such/folder"), "is not the folder of a run"),
    ],
)
def test_wrong_usage_is_refused(arguments: tuple[str, ...], words: str) -> None:
    code, error = refuse(*arguments)
    assert (code, words in error) == (2, True), error


def test_a_folder_that_is_there_is_not_written_to(tmp_path: Path) -> None:
    code, error = refuse("--against", "cat", "--keep", str(tmp_path))
    assert code == 2
    assert "name a new folder" in error


def make_report(seed: int, *findings: Finding) -> Report:
    latency = Latency(3, 0.1, 0.2, 0.3, 0.4)
    return Report(
        seed=seed,
        findings=list(findings),
        commits=1_000,
        changes=2_000,
        lines=2_003,
        repeats=3,
        unexplained=1,
        starts=2,
        ended=0,
        blows={"kill": 1},
        explained={"kill": 2},
        latency=latency,
        undisturbed=latency,
    )


def test_a_run_is_a_line_with_its_seed_and_its_findings_below() -> None:
    finding = Finding("lost", "the row never came", (7, 8))
    lines = list(describe_run(make_report(3, finding, finding, finding), 2))
    assert lines == [
        "seed 3: 3 lost; 1,000 commits, 2,000 changes, 2,003 lines; 1 kill;"
        " repeats: 2 explained (2 kill), 1 unexplained",
        "  lost: the row never came (line 7, 8)",
        "  lost: the row never came (line 7, 8)",
        "  and 1 more",
    ]


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.3, "partitions every 0.3 s"), (0.0, "no partitions")]
)
def test_churn_is_a_line_with_its_seed(seconds: float, words: str) -> None:
    report = make_report(3)
    report.churn = ChurnReport(Churn(3, seconds, 1, 2), {"schema": 1_200, "writer_ended": 5})
    assert list(describe_run(report, 2))[1:] == [
        f"  churn of seed 3: {words}, 1,200 schema changes, 0 writers started, 5 ended"
    ]


def test_all_runs_are_summed_up() -> None:
    reports = [make_report(1), make_report(2, Finding("torn", "t"), Finding("late", "l"))]
    assert list(describe_all(reports)) == [
        "2 runs: 1 torn, 1 late, wrong with seed 2",
        "repeats: 4 explained by blows, 2 unexplained",
        "latency: p50 0.100 s, p99 0.300 s (medians of the runs), most 0.400 s",
        "latency, undisturbed: p50 0.100 s, p99 0.300 s (medians of the runs), most 0.400 s",
    ]
    assert next(iter(describe_all(reports[:1]))) == "1 run: right"


def test_the_json_has_every_finding_with_its_lines() -> None:
    value = make_json(Settings("cat"), [make_report(2, Finding("torn", "t", (4,)))])
    loaded = json.loads(json.dumps(value))
    assert loaded["findings"] == {"torn": 1}
    assert loaded["runs"][0]["findings"] == [{"kind": "torn", "text": "t", "lines": [4]}]
    assert loaded["settings"]["command"] == "cat"
