"""The unit for systemd: verified by systemd itself where it is installed."""

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
from fixtures.deployed import DEPLOY, UNIT, read_unit

from watcher.errors import ConfigurationError
from watcher.settings.watcher import parse_watch_config

SERVICE = read_unit()["Service"]
COMMAND = shlex.split(SERVICE["ExecStart"])
CONFIG = parse_watch_config(tomllib.loads((DEPLOY / "systemd/watch.toml").read_text()))
OFFLINE_VERSION = 250
"""systemd: 'security --offline' came with it."""
EXPOSURE_MAX = 20
"""In tenths: 'OK' of systemd-analyze ends at 2.0 ... 4.0, depending on its version."""


def test_it_runs_a_command_that_there_is() -> None:
    program, *arguments = COMMAND
    assert program.endswith("/bin/spanner-watcher")
    result = run_command(*arguments, "--help")
    assert result.returncode == 0, result.stderr
    assert arguments[-2:] == ["--config", "/etc/spanner-watcher/%i.toml"]


def test_a_window_may_end_before_it_is_killed() -> None:
    assert CONFIG.grace < int(SERVICE["TimeoutStopSec"].removesuffix("s"))


def test_it_is_not_started_again_with_wrong_settings() -> None:
    assert SERVICE["Restart"] == "on-failure"
    assert SERVICE["RestartPreventExitStatus"] == str(ConfigurationError.exit_code)


def test_what_the_settings_write_is_in_the_folder_of_the_state() -> None:
    """The file system is read-only but for it."""
    assert SERVICE["ProtectSystem"] == "strict"
    assert SERVICE["WorkingDirectory"] == f"%S/{SERVICE['StateDirectory']}"
    for path in (CONFIG.delivery.to, CONFIG.delivery.dead_letters):
        assert path
        assert not Path(path).is_absolute()


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


def test_systemd_has_nothing_to_say_against_it(tmp_path: Path) -> None:
    find_systemd()
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace(COMMAND[0], sys.executable))
    result = analyze("verify", "--man=no", str(unit))
    about_it = [line for line in result.stderr.splitlines() if "spanner-watcher" in line]
    assert not about_it


def test_it_is_shut_off_from_the_machine(tmp_path: Path) -> None:
    if find_systemd() < OFFLINE_VERSION:
        pytest.skip("this systemd-analyze cannot review a file")
    unit = tmp_path / UNIT.name.replace("@", "-")
    unit.write_text(UNIT.read_text())
    result = analyze("security", "--offline=yes", f"--threshold={EXPOSURE_MAX}", str(unit))
    assert result.returncode == 0, result.stdout[-500:] + result.stderr
