"""Side by side with Debezium: what its events say, its settings, and where there is no Java."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from benchmarks.compiled import MissingToolsError
from benchmarks.conduct import conduct
from benchmarks.debezium import build
from benchmarks.debezium.cluster import Ports, set_up_connector, write_properties
from benchmarks.run_settings import Consumer
from benchmarks.scenarios import find_scenario

DATABASE = "projects/project-1/instances/instance-1/databases/database-1"
TINY = ("workload.rows=200", "workload.seconds=2", "sizes=500", "rates=100")


def there_are_tools() -> bool:
    try:
        build.tools()
    except MissingToolsError:
        return False
    return True


def test_without_a_jdk_and_maven_it_is_skipped_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("confluent_kafka")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    result = conduct(find_scenario("debezium"))
    assert result.outcome == "skipped"
    assert not result.runs
    assert "a JDK (javac) and Maven (mvn) not found on PATH" in result.skipped[0]
    assert "Debezium" in result.skipped[0]


def test_an_event_gives_key_version_and_commit_timestamp() -> None:
    pytest.importorskip("confluent_kafka")
    debezium = pytest.importorskip("benchmarks.systems.debezium")
    event = {"after": {"Id": 7, "Version": 3}, "source": {"ts_us": 1_700_000_000_123_456}}
    assert debezium.parse_change(json.dumps(event).encode()) == (7, 3, 1_700_000_000_123_456)


def test_the_connector_starts_where_the_tables_were_filled(tmp_path: Path) -> None:
    ports = Ports.choose()
    since = "2026-01-31T12:00:00Z"
    settings = set_up_connector(DATABASE, "127.0.0.1:9010", "Stream0", since, ports)
    text = write_properties(tmp_path / "connector.properties", settings).read_text()
    assert "gcp.spanner.instance.id=instance-1\n" in text
    assert f"gcp.spanner.start.time={since}\n" in text
    assert "gcp.spanner.emulator.host=http://127.0.0.1:9010\n" in text
    assert len({ports.broker, ports.controller, ports.rest}) == 3
    assert "gcp.spanner.emulator.host" not in set_up_connector(DATABASE, None, "S", since, ports)


def test_debezium_needs_a_change_stream() -> None:
    with pytest.raises(ValidationError, match="set capture to push"):
        Consumer(system="debezium")


@pytest.mark.skipif(not there_are_tools(), reason="needs a JDK and Maven")
def test_both_deliver_what_was_written() -> None:
    pytest.importorskip("confluent_kafka")
    result = conduct(find_scenario("debezium"), TINY)
    assert result.outcome == "passed"
    assert [run.plan.consumer.system for run in result.runs] == ["watcher", "debezium"] * 2
    for run in result.runs:
        assert run.verdict.lost_nothing
        assert run.client is not None
        assert run.client.cpu_running > 0
    assert {str(row["case"]) for row in result.figures} == {"backlog of 500", "100 changes/s"}
