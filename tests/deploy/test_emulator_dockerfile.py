"""The Dockerfile of the embedded server: built as the other one is, and asked how it is."""

from __future__ import annotations

import json
import subprocess
import sys

from fixtures.commands import run_command
from fixtures.deployed import DEPLOY, DOCKERFILE, list_instructions, read_stages, read_words

from emulator.process import spawn

FILE = DEPLOY / "emulator.Dockerfile"
BUILD, FINAL = read_stages(FILE)
PORT = "9010"


def ask_health(address: str) -> int:
    """The exit status of the health check, of a server that is elsewhere."""
    (check,) = list_instructions(FINAL, "HEALTHCHECK")
    python, *arguments = json.loads(check.partition("CMD ")[2])
    assert python == "python"
    arguments = [each.replace(f"127.0.0.1:{PORT}", address) for each in arguments]
    assert any(address in each for each in arguments)
    return subprocess.run([sys.executable, *arguments], capture_output=True, check=False).returncode


def test_it_is_built_of_the_files_of_which_the_other_image_is() -> None:
    build, final = read_stages(DOCKERFILE)
    for instruction in ("FROM", "COPY", "WORKDIR", "ADD"):
        expected = list_instructions(build, instruction)
        assert list_instructions(BUILD, instruction) == expected
    for instruction in ("FROM", "COPY", "USER", "ENV", "WORKDIR", "RUN", "ADD"):
        assert list_instructions(FINAL, instruction) == list_instructions(final, instruction)
    let_through = DEPLOY / "Dockerfile.dockerignore"
    assert (DEPLOY / f"{FILE.name}.dockerignore").read_text() == let_through.read_text()


def test_it_has_what_its_command_needs() -> None:
    (run,) = list_instructions(BUILD, "RUN")
    assert '".[emulator]"' in run
    program, *arguments = read_words(FINAL, "ENTRYPOINT")
    assert program == "spanner-watcher"
    assert arguments[-2:] == ["--port", PORT]
    assert list_instructions(FINAL, "EXPOSE") == [PORT]
    shown = run_command(*arguments, "--help")
    assert shown.returncode == 0, shown.stderr


def test_it_is_healthy_while_it_serves() -> None:
    with spawn() as server:
        assert ask_health(server.address) == 0
    assert ask_health(server.address) != 0
