"""Runs with ``--churn``: what changes, that the watcher is right, and that the judges still find
whatever is wrong."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fixtures.commands import run_command
from fixtures.server import INSTANCE, PROJECT, spawn
from google.cloud import spanner

from conformance.churn import choose_churn
from conformance.presets import PRESETS
from conformance.run import DATABASE
from conformance.schema_changes import list_changes
from conformance.settings import STREAM, Settings
from watcher.spanner.timestamps import format_timestamp

SEED = 22
"""Partitions every 0.6 s, the schema and writers every 0.3 s on average, transactions whole."""
Lines = list[dict[str, Any]]
Report = dict[str, Any]


def call_kit(*arguments: str) -> Report:
    done = run_command("conformance", *arguments, "--json")
    report: Report = json.loads(done.stdout)
    assert done.returncode == bool(report["findings"]), done.stderr
    return report


@pytest.fixture(scope="module")
def churned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of a change stream's watcher with churn, and no blows."""
    folder = tmp_path_factory.mktemp("churned") / "kept"
    report = call_kit(
        "--against=watch-change-stream",
        "--churn",
        "--blow=none",
        "--runs=1",
        f"--seed={SEED}",
        "--seconds=4",
        "--late-max=0",
        "--settle=120",
        f"--keep={folder}",
    )
    assert report["findings"] == {}
    return folder / f"seed-{SEED}"


def judge_edited(
    churned: Path, folder: Path, edit: Callable[[Lines], object], late_seconds_max: float = 0
) -> set[str]:
    """The kinds of the findings about the kept run, after its lines were edited."""
    settings = json.loads((churned / "settings.json").read_text())
    settings["promises"]["late_seconds_max"] = late_seconds_max
    (folder / "settings.json").write_text(json.dumps(settings))
    for name in ("commits.jsonl", "blows.jsonl", "run.json"):
        (folder / name).write_bytes((churned / name).read_bytes())
    lines: Lines = [json.loads(text) for text in (churned / "lines.jsonl").read_text().splitlines()]
    edit(lines)
    (folder / "lines.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return {finding["kind"] for finding in call_kit(f"--judge={folder}")["findings"]}


def find_versions(lines: Lines) -> tuple[int, int]:
    """Two versions of a row in the order of their commits."""
    rows: dict[tuple[str, str], int] = {}
    for place, line in enumerate(lines):
        change = json.loads(line["text"])
        row = change["table"], json.dumps(change["key"])
        if row in rows:
            return rows[row], place
        rows[row] = place
    raise AssertionError("no row has two versions")


def swap_versions(lines: Lines) -> None:
    first, second = find_versions(lines)
    lines[first]["text"], lines[second]["text"] = lines[second]["text"], lines[first]["text"]


def rename_transaction(lines: Lines) -> None:
    first, second = find_versions(lines)
    change, other = json.loads(lines[first]["text"]), json.loads(lines[second]["text"])
    change["transaction"] = other["transaction"]
    lines[first]["text"] = json.dumps(change)


def test_the_run_says_what_changed(churned: Path) -> None:
    report = json.loads((churned / "report.json").read_text())
    assert report["churn"]["churn"]["seed"] == SEED
    assert report["churn"]["churn"]["partition_seconds"] == 0.6
    events = json.loads((churned / "run.json").read_text())["churn"]
    kinds = {event["kind"] for event in events}
    assert kinds == {"schema", "writer_started", "writer_ended"} == report["churn"]["events"].keys()


def test_partitions_have_really_changed(churned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began = json.loads((churned / "run.json").read_text())["began"]
    with spawn(churned / "spanner") as server:
        monkeypatch.setitem(os.environ, "SPANNER_EMULATOR_HOST", server.address)
        client = spanner.Client(project=PROJECT, disable_builtin_metrics=True)
        database = client.instance(INSTANCE).database(DATABASE)
        partitions = read_children(database, began, None)
        assert any(read_children(database, began, token) for token in partitions)


def read_children(database: Any, began: int, token: str | None) -> list[str]:
    """The tokens of the child partitions that a query of a partition ends with."""
    query = (
        f"SELECT ChangeRecord FROM READ_{STREAM}(start_timestamp => @began,"
        " end_timestamp => @ended, partition_token => @token, heartbeat_milliseconds => 10000)"
    )
    types = spanner.param_types
    with database.snapshot() as snapshot:
        rows = snapshot.execute_sql(
            query,
            {
                "began": format_timestamp(began),
                "ended": format_timestamp(began + 4_000_000),
                "token": token,
            },
            {"began": types.TIMESTAMP, "ended": types.TIMESTAMP, "token": types.STRING},
        )
        records = [record for (row,) in rows for record in row]
    return [child[0] for record in records for each in record[2] for child in each[2]]


@pytest.mark.parametrize(
    ("edit", "kind"),
    [
        (lambda lines: lines.pop(len(lines) // 2), "lost"),
        (lambda lines: lines.insert(9, lines[8]), "doubled"),
        (swap_versions, "reordered"),
        (rename_transaction, "torn"),
    ],
)
def test_the_judges_find_what_is_wrong(
    churned: Path, tmp_path: Path, edit: Callable[[Lines], object], kind: str
) -> None:
    assert kind in judge_edited(churned, tmp_path, edit)


def test_a_late_change_is_found(churned: Path, tmp_path: Path) -> None:
    def delay(lines: Lines) -> None:
        began = json.loads((churned / "run.json").read_text())["began"]
        for line in lines:
            line["arrived"] = began
        lines[-1]["arrived"] += 3_600_000_000

    assert judge_edited(churned, tmp_path, delay, late_seconds_max=10) == {"late"}


def test_a_seed_repeats_its_churn() -> None:
    settings = replace(PRESETS["watch-change-stream"].settings, churn=True, seed=7)
    assert choose_churn(settings) == choose_churn(settings)
    chosen = {choose_seconds(replace(settings, seed=seed)) for seed in range(20)}
    assert len(chosen) > 5
    assert choose_churn(replace(settings, churn=False)) is None


def choose_seconds(settings: Settings) -> tuple[float, float, float]:
    churn = choose_churn(settings)
    assert churn is not None
    return churn.partition_seconds, churn.schema_seconds, churn.writer_seconds


def test_a_slow_system_has_slow_churn() -> None:
    assert min(choose_seconds(Settings("cat", pause_seconds=10.0, churn=True))) >= 5


def test_who_polls_has_no_partitions() -> None:
    partitions, schema, _ = choose_seconds(replace(PRESETS["watch-poll"].settings, churn=True))
    assert partitions == 0
    assert schema > 0


def test_the_value_capture_changes_only_where_there_is_a_choice() -> None:
    def signs(stream: str | None, *captures: str) -> list[str]:
        return [change.sign for change in list_changes(stream, captures)]

    assert not any("capture" in sign for sign in signs(STREAM, "NEW_ROW"))
    assert "value_capture_type = 'NEW_ROW'" in signs(STREAM, "NEW_ROW", "NEW_VALUES")
    assert not any("=" in sign for sign in signs(None, "NEW_ROW", "NEW_VALUES"))
