"""The Dockerfile: what is copied builds the wheel, and what runs has no rights."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from fixtures.commands import run_command
from fixtures.deployed import (
    DEPLOY,
    DOCKERFILE,
    ROOT,
    list_extras,
    list_instructions,
    read_stages,
    read_words,
)

BUILD, FINAL = read_stages()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_both_stages_stand_on_one_image_with_a_version() -> None:
    (build,), (final,) = (list_instructions(stage, "FROM") for stage in (BUILD, FINAL))
    assert build.removesuffix(" AS build") == final
    assert re.fullmatch(r"python:3\.\d+-slim", final)


def test_it_runs_as_a_user_without_rights() -> None:
    (user,) = list_instructions(FINAL, "USER")
    numbers = [int(part) for part in user.split(":")]  # Kubernetes checks numbers only
    assert all(number >= 10_000 for number in numbers)
    assert [name for name, _ in FINAL].index("USER") > [name for name, _ in FINAL].index("COPY")


def test_nothing_is_fetched_past_pip() -> None:
    assert not list_instructions(BUILD, "ADD") + list_instructions(FINAL, "ADD")
    (copied,) = list_instructions(FINAL, "COPY")
    assert copied.startswith("--from=build ")
    assert not list_instructions(FINAL, "RUN")


def test_it_runs_a_command_that_there_is() -> None:
    assert read_words(FINAL, "ENTRYPOINT") == ["spanner-watcher"]
    result = run_command(*read_words(FINAL, "CMD"), "--help")
    assert result.returncode == 0, result.stderr


def test_the_extras_exist() -> None:
    assert set(list_extras()) <= set(PROJECT["optional-dependencies"])


def list_copied() -> list[tuple[str, str]]:
    """Each file or folder that the build copies, and where to."""
    pairs = []
    for rest in list_instructions(BUILD, "COPY"):
        *sources, target = rest.split()
        pairs += [(source, target) for source in sources]
    return pairs


def test_what_is_copied_is_let_through_to_the_build() -> None:
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    assert patterns[0] == "*"
    assert {line[1:] for line in patterns if line[0] == "!"} == {name for name, _ in list_copied()}


def test_what_is_copied_builds_the_wheel(tmp_path: Path) -> None:
    project = tmp_path / "source"
    for name, target in list_copied():
        place = project / target / Path(name).name if target.endswith("/") else project / target
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, place)
    for folder, out in ((ROOT, "whole"), (project, "copied")):
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / out],
            cwd=folder,
            check=True,
            capture_output=True,
            timeout=300,
        )
    (whole,), (copied,) = ((tmp_path / out).glob("*.whl") for out in ("whole", "copied"))
    assert copied.read_bytes() == whole.read_bytes()


def docker_runs() -> bool:
    if shutil.which("docker") is None:
        return False
    return not subprocess.run(["docker", "info"], capture_output=True, check=False).returncode


def test_the_image_runs_with_a_read_only_file_system() -> None:
    if not docker_runs():
        pytest.skip("no docker that runs here")
    image = "spanner-watcher:test"
    build = ["docker", "build", "--file", str(DOCKERFILE), "--tag", image, str(ROOT)]
    subprocess.run(build, check=True, timeout=540)
    limits = ["--rm", "--read-only", "--network=none", "--cap-drop=ALL"]
    shown = subprocess.run(
        ["docker", "run", *limits, image, "--version"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    assert shown.strip() == f"spanner-watcher {PROJECT['version']}"


REMOVED = ("benchmarks", "conformance", "emulator")
WITHOUT_THEM = """
import sys
from importlib import import_module
sys.modules |= dict.fromkeys({removed!r})
from watcher.cli import COMMANDS
from watcher.process.terminal.loading import declare
for name, where in COMMANDS.items():
    module = where.partition(":")[0]
    if not getattr(declare(module), "EXTRAS", ()):
        import_module(module)
        print(name)
"""


def test_the_image_has_no_package_that_its_commands_do_not_need() -> None:
    """What is removed from it is loaded by none of the commands that run there."""
    run = " ".join(list_instructions(BUILD, "RUN"))
    for name in REMOVED:
        assert f"/site-packages/{name}" in run
    program = WITHOUT_THEM.format(removed=set(REMOVED))
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert shown.returncode == 0, shown.stderr
    assert {"watch", "page", "check", "status", "ctl", "clear", "replay"} <= {*shown.stdout.split()}
