"""Debezium as a command that prints its events."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.compiled import MissingToolsError
from benchmarks.debezium import build
from conformance.presets import PRESETS
from conformance.runs import check_preset, run_in_process
from watcher.model.errors import ConfigurationError


def test_without_a_jdk_and_maven_it_is_skipped_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("confluent_kafka")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(ConfigurationError, match=r"skipped: a JDK \(javac\) and Maven \(mvn\)"):
        check_preset("debezium")


@pytest.mark.timeout(1_500)
def test_debezium_delivers_every_version_when_nothing_strikes(tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka")
    try:
        build.tools()
    except MissingToolsError as error:
        pytest.skip(str(error))
    settings = PRESETS["debezium"].settings
    report = run_in_process(
        replace(
            settings,
            preset="debezium",
            blows=(),
            seconds=3,
            settle_seconds=300,
            promises=replace(settings.promises, late_seconds_max=0),
        ),
        tmp_path / "run",
    )
    assert report.findings == []
    assert report.lines >= report.changes > 20
