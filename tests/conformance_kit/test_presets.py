"""The systems that the kit knows by name."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from conformance.presets import PRESETS, write_files
from conformance.settings import Settings, split_command
from watcher.process.text_files import read_toml
from watcher.settings.watcher import parse_watch_config

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "conformance.md").read_text()
DATABASE = "projects/project-1/instances/instance-1/databases/database-1"
VALUES = {"address": DATABASE, "database": DATABASE, "start": "2026-01-31T12:00:00.000000Z"}


def test_the_documented_presets_are_all_there() -> None:
    named = re.findall(r"^spanner-watcher conformance --against ([\w-]+)$", PAGE, re.MULTILINE)
    assert named == list(PRESETS)


@pytest.mark.parametrize("name", [name for name in PRESETS if PRESETS[name].file])
@pytest.mark.parametrize("seed", range(1, 9))
def test_the_file_of_a_watcher_is_right(tmp_path: Path, name: str, seed: int) -> None:
    preset = PRESETS[name]
    settings = preset.settle(replace(preset.settings, seed=seed))
    write_files(name, tmp_path, VALUES, settings)
    config = parse_watch_config(read_toml(tmp_path / "watch.toml"))
    assert config.transactions == settings.promises.transactions
    assert (config.stream.name is None) == (settings.prepare == "poll")
    settings.check()


def test_placeholders_are_replaced_after_words_are_split() -> None:
    words = split_command("run '{state}/a b' {tables} {other}", {"state": "/x y", "tables": "A,B"})
    assert words == ["run", "/x y/a b", "A,B", "{other}"]


def test_settings_survive_their_file() -> None:
    settings = PRESETS["debezium"].settings
    assert Settings.from_json(json.loads(json.dumps(asdict(settings)))) == settings
