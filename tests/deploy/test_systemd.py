"""The units for systemd: verified by systemd itself where it is installed."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from fixtures.commands import run_command
from fixtures.deployed import PAGE_UNIT, UNIT_SETTINGS, WATCH_UNIT, read_unit

from watcher.model.errors import ConfigurationError
from watcher.settings.watcher import parse_watch_config

WATCH = read_unit(WATCH_UNIT)["Service"]
CONFIG = parse_watch_config(tomllib.loads(UNIT_SETTINGS.read_text()))
OFFLINE_VERSION = 250
"""systemd: 'security --offline' came with it."""
EXPOSURE_MAX = 20
"""In tenths: 'OK' of systemd-analyze ends at 2.0 ... 4.0, depending on its version."""


STATE = {"StateDirectory", "StateDirectoryMode", "WorkingDirectory"}
COMMAND = {"ExecStart", "TimeoutStopSec", "KillMode"}

both = pytest.mark.parametrize("unit", [WATCH_UNIT, PAGE_UNIT], ids=["watch", "page"])


def read_command(unit: Path) -> list[str]:
    """What the unit starts."""
    return shlex.split(read_unit(unit)["Service"]["ExecStart"])


@both
def test_it_runs_a_command_that_there_is(unit: Path) -> None:
    program, *arguments = read_command(unit)
    assert program.endswith("/bin/spanner-watcher")
    result = run_command(*arguments, "--help")
    assert result.returncode == 0, result.stderr
    assert arguments[1:] == ["--config", "/etc/spanner-watcher/%i.toml"]


def test_a_window_may_end_before_it_is_killed() -> None:
    assert CONFIG.grace < int(WATCH["TimeoutStopSec"].removesuffix("s"))


@both
def test_it_is_not_started_again_with_wrong_settings(unit: Path) -> None:
    service = read_unit(unit)["Service"]
    assert service["Restart"] == "on-failure"
    assert service["RestartPreventExitStatus"] == str(ConfigurationError.exit_code)


def test_what_the_settings_write_is_in_the_folder_of_the_state() -> None:
    """The file system is read-only but for it."""
    assert WATCH["ProtectSystem"] == "strict"
    assert WATCH["WorkingDirectory"] == f"%S/{WATCH['StateDirectory']}"
    for path in (CONFIG.delivery.to, CONFIG.delivery.dead_letters):
        assert path
        assert not Path(path).is_absolute()


def list_settings(unit: Path) -> set[tuple[str, str]]:
    """Each setting of the service, also one that comes twice."""
    service = unit.read_text().partition("[Service]")[2]
    lines = (line.partition("=") for line in service.splitlines() if not line.startswith("#"))
    return {(name, value) for name, equals, value in lines if equals}


def test_the_page_is_shut_off_as_the_watcher_and_keeps_no_state() -> None:
    watch, page = list_settings(WATCH_UNIT), list_settings(PAGE_UNIT)
    assert {name for name, _ in watch - page} == STATE | COMMAND
    assert {name for name, _ in page - watch} <= COMMAND


def find_systemd() -> int:
    """systemd's version, where systemd-analyze is installed."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    shown = subprocess.run(
        ["systemd-analyze", "--version"], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    (version,) = re.findall(r"^systemd (\d+)", shown)
    return int(version)


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", "--no-pager", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@both
def test_systemd_has_nothing_to_say_against_it(unit: Path, tmp_path: Path) -> None:
    find_systemd()
    installed = tmp_path / unit.name
    installed.write_text(unit.read_text().replace(read_command(unit)[0], sys.executable))
    result = analyze("verify", "--man=no", str(installed))
    about_it = [line for line in result.stderr.splitlines() if "spanner-watcher" in line]
    assert not about_it


@both
def test_it_is_shut_off_from_the_machine(unit: Path, tmp_path: Path) -> None:
    if find_systemd() < OFFLINE_VERSION:
        pytest.skip("this systemd-analyze cannot review a file")
    installed = tmp_path / unit.name.replace("@", "-")
    installed.write_text(unit.read_text())
    result = analyze("security", "--offline=yes", f"--threshold={EXPOSURE_MAX}", str(installed))
    assert result.returncode == 0, result.stdout[-500:] + result.stderr
