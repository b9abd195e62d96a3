"""``make test-cloud`` against an embedded server that is reached as a foreign one: by an endpoint,
with TLS, without SPANNER_EMULATOR_HOST."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cloud import run as test_cloud
from cloud.cases import CASES, PROBE, Case
from fixtures.certificates import Certificate
from fixtures.pace import allow

from emulator.server import start
from emulator.tls import Tls
from watcher.model.errors import ConfigurationError
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import open_client
from watcher.spanner.temporary_databases import create_temporarily

ROOT = Path(__file__).resolve().parents[2]
SECONDS_MAX = 300
WRONG = Case("probe", "status --no-such-option", "status --no-such-option", 1, 1, made=True)


@pytest.fixture(scope="module")
def foreign(server_certificate: Certificate) -> Iterator[str]:
    """An address on a foreign server, whose instance is there and has no database."""
    with start(tls=Tls(server_certificate.certificate, server_certificate.key)) as server:
        text = (
            f"spanner://projects/default/instances/default/databases/own?endpoint={server.address}"
            f"&ca_certificate={server_certificate.certificate}"
        )
        with pytest.MonkeyPatch.context() as environment:
            environment.delenv("SPANNER_EMULATOR_HOST", raising=False)
            client = open_client(DatabaseAddress.parse(text))
            config = f"{client.project_name}/instanceConfigs/emulator-config"
            client.instance("default", config, node_count=1).create().result(30)
        yield text


@pytest.fixture(autouse=True)
def no_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPANNER_EMULATOR_HOST", raising=False)


def list_databases(foreign: str) -> list[str]:
    instance = open_client(DatabaseAddress.parse(foreign)).instance("default")
    return sorted(each.name.rpartition("/")[2] for each in instance.list_databases())


def run(*arguments: str) -> int:
    return test_cloud.run(test_cloud.parse_options(arguments))


def start_run(*arguments: str) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    command = [sys.executable, "-m", "cloud.run", *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )


@pytest.mark.essential
def test_a_foreign_server_is_probed_and_watched_under_kills(foreign: str, tmp_path: Path) -> None:
    chosen = ("--only", "probe", "--only", "poll")
    with start_run(foreign, "--yes", "--short", "--out", str(tmp_path), *chosen) as process:
        output, _ = process.communicate(timeout=allow(SECONDS_MAX))
    assert process.returncode == 0, output
    assert "wrong: nothing; left: nothing" in output
    report = json.loads((tmp_path / "report.json").read_text())
    probe, poll = report["cases"]
    assert {each["outcome"] for each in probe["output"]} == {"holds", "cannot be tried"}
    assert poll["output"]["findings"] == {}
    assert poll["output"]["runs"][0]["commits"] > 20
    assert list_databases(foreign) == []


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("name", ["demo", "replica", "stream", "push"])
def test_a_foreign_server_has_the_other_cases(foreign: str, tmp_path: Path, name: str) -> None:
    chosen = ("--only", name)
    with start_run(foreign, "--yes", "--short", "--out", str(tmp_path), *chosen) as process:
        output, _ = process.communicate(timeout=allow(2 * SECONDS_MAX))
    assert process.returncode == 0, output
    assert list_databases(foreign) == []


def test_a_case_that_fails_is_said_and_leaves_nothing(
    foreign: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(test_cloud, "CASES", (WRONG,))
    assert run(foreign, "--yes", "--out", str(tmp_path)) == 1
    output = capsys.readouterr().out
    assert "probe: exit code 2" in output
    assert "No such option" in output
    assert "wrong: probe; left: nothing" in output
    assert list_databases(foreign) == []


@pytest.mark.parametrize(("number", "left"), [(signal.SIGTERM, 0), (signal.SIGKILL, 1)])
def test_a_run_that_is_stopped_leaves_nothing_and_one_that_is_killed_is_cleaned(
    foreign: str, number: signal.Signals, left: int, capsys: pytest.CaptureFixture[str]
) -> None:
    process = start_run(foreign, "--yes", "--short", "--only", "probe")
    until = time.monotonic() + allow(SECONDS_MAX)
    while not list_databases(foreign):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.1)
    process.send_signal(number)
    process.communicate(timeout=allow(SECONDS_MAX))
    if left:
        with pytest.raises(ConfigurationError, match="run it with --clean"):
            run(foreign, "--yes", "--only", "probe")
    assert run(foreign, "--clean", "--yes") == 0
    word = "watcher-test-probe" if left else "nothing was left"
    assert f"dropped: {word}" in capsys.readouterr().out
    assert list_databases(foreign) == []


def test_it_says_what_it_takes_and_asks(foreign: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigurationError, match="add --yes elsewhere"):
        run(foreign)
    output = capsys.readouterr().out
    assert f"{len(CASES)} databases, one after another" in output
    assert "1,000 processing units" in output
    assert "at $0.90 a node-hour" in output
    assert list_databases(foreign) == []


@pytest.mark.parametrize("prefix", ["", "1st", "Watcher", "a" * 22])
def test_a_prefix_that_no_database_can_have_is_refused(foreign: str, prefix: str) -> None:
    with pytest.raises(ConfigurationError, match="--prefix"):
        run(foreign, "--prefix", prefix)


def test_a_database_that_is_there_is_not_touched(foreign: str) -> None:
    address = DatabaseAddress.parse(foreign)
    with create_temporarily(address, ()):
        with (
            pytest.raises(ConfigurationError, match="databases/own exists"),
            create_temporarily(address, ()),
        ):
            pass
        assert list_databases(foreign) == ["own"]
    assert list_databases(foreign) == []


def test_the_documented_cases_are_all_there() -> None:
    page = (ROOT / "docs" / "guarantees.md").read_text()
    assert all(f"`{case.name}`" in page for case in CASES)
    assert PROBE in {case.command for case in CASES}
