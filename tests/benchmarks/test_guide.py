"""What ``bench list`` and ``bench run`` tell a user."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.cli import app
from benchmarks.cli.run import short_set
from benchmarks.overrides import change_settings, flat
from benchmarks.pages.guide import list_sections
from benchmarks.scenarios import SCENARIOS, find_scenario
from watcher.model.errors import ConfigurationError


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_every_setting_is_shown_as_it_can_be_set(name: str) -> None:
    chosen = find_scenario(name)
    settings, documented = chosen.settings(), list_sections(chosen)
    assert {row.name for each in documented for row in each.rows} == {
        key.rpartition(".")[2] for key in flat(settings)
    }
    assignments = [
        f"{row.name if each is documented[0] else f'{each.title}.{row.name}'}={row.value}"
        for each in documented
        for row in each.rows
        if row.choices != "number | nothing"
    ]
    assert change_settings(settings, assignments) == settings


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_what_a_setting_may_be_is_said_in_words(name: str) -> None:
    for each in list_sections(find_scenario(name)):
        assert each.text
        assert all("typing" not in row.choices and "class" not in row.choices for row in each.rows)


def test_bounds_and_choices_are_told() -> None:
    rows = {row.name: row for each in list_sections(find_scenario("spark")) for row in each.rows}
    assert rows["mutations"].choices == "whole number, at least 1, at most 10,000"
    assert rows["capture"].choices == "poll | change-stream | push"
    assert rows["partitions"].value == "1,4"
    assert rows["sinks"].choices == "list of foreach-batch | parquet"


def test_the_short_set_on_another_database_leaves_the_embedded_server_out() -> None:
    assert "server" in [each.name for each in short_set(embedded=True)]
    assert "server" not in [each.name for each in short_set(embedded=False)]


def test_the_command_line_teaches() -> None:
    shown = CliRunner().invoke(app, ["list", "clearing"]).output
    assert "`values` are seconds between clearings" in shown
    assert "clear_every" in shown
    assert "--set transactions=100" in CliRunner().invoke(app, ["run", "--help"]).output


def test_a_wrong_setting_of_the_last_scenario_stops_before_the_first(tmp_path: Path) -> None:
    arguments = [
        "run",
        "decode",
        "index",
        "--set",
        "values=2000",
        "--out",
        str(tmp_path / "results"),
    ]
    invoked = CliRunner().invoke(app, arguments)
    assert isinstance(invoked.exception, ConfigurationError)
    assert not (tmp_path / "results").exists()


def test_nothing_to_run_is_refused() -> None:
    invoked = CliRunner().invoke(app, ["run"])
    assert invoked.exit_code == 2
    assert "--short" in invoked.output
