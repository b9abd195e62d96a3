"""What every command has: JSON, quiet, errors as JSON, no colours; and a fault of the program."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import typer.main
from fixtures.commands import run_command, run_in_terminal
from fixtures.singers import address_of, write_singers
from fixtures.wrong_values import PROGRAM, run_here
from google.cloud.spanner_v1.database import Database

from watcher.cli import app
from watcher.process.terminal.commands import CommandApp, find_exit_code

PRINTS_LINES = {"watch", "replay"}
"""Their output is JSON lines in any case."""
SERVES = {"emulator", "page"}


def list_commands(command: Any, path: tuple[str, ...] = ()) -> dict[str, Any]:
    if not hasattr(command, "commands"):
        return {" ".join(path): command}
    found: dict[str, Any] = {}
    for name in command.commands:
        found |= list_commands(command.commands[name], (*path, name))
    return found


COMMANDS = list_commands(typer.main.get_command(app))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_the_common_options(name: str) -> None:
    command = COMMANDS[name]
    context = command.make_context(name, [], resilient_parsing=True)
    options = {each for param in command.get_params(context) for each in param.opts}
    assert {"--quiet", "--json-errors", "--verbose", "--help"} <= options
    assert ("--json" in options) is (name not in PRINTS_LINES | SERVES)


@pytest.mark.parametrize(
    ("arguments", "kind", "code"),
    [
        (["status", "--no-such-option", "--json-errors"], "UsageError", 2),
        (["nothing", "--json-errors"], "UsageError", 2),
        (["status", "--json-errors", "-d", "x"], "AddressError", 2),
        (["status", "-d", "x", "--every", "", "--json-errors"], "UsageError", 2),
    ],
)
def test_an_error_is_json_where_it_is_asked_for(arguments: list[str], kind: str, code: int) -> None:
    outcome = run_here(arguments)
    assert outcome.code == code
    error = json.loads(outcome.err)["error"]
    assert (error["kind"], error["exit_code"]) == (kind, code)
    assert error["message"]
    assert run_here(["status", "-d", "x"]).err.startswith("error: ")


def test_quiet_leaves_notes_out_and_results_and_errors_in(singers: Database) -> None:
    where = ("--database", str(address_of(singers)), "--table", "Singers")
    loud, quiet = (run_command("ddl", "plan", *where, *more) for more in ((), ("--quiet",)))
    assert "nothing to do" in loud.stderr
    assert (quiet.returncode, quiet.stderr) == (0, "")
    write_singers(singers, [1], "name")
    lines = run_command("watch", *where, "--once", "--from", "earliest", "-q")
    assert json.loads(lines.stdout)["key"] == {"SingerId": 1}
    wrong = run_command("watch", *where, "--interval", "soon", "-q")
    assert wrong.stderr.startswith("error: ")


def test_commands_to_consumers_answer_in_json(singers: Database) -> None:
    where = ("--database", str(address_of(singers)))
    run_command("watch", *where, "-t", "Singers", "--consumer", "me", "--once")
    stopped = run_command("ctl", "pause", "me", *where, "--json")
    assert json.loads(stopped.stdout) == {"command": "pause", "consumers": ["me"]}
    forgotten = run_command("ctl", "forget", "me", *where, "--dry-run", "--json")
    assert json.loads(forgotten.stdout) == {"dry_run": True, "removed": {"me": ["Singers"]}}


COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-7][0-9;]*m")


def test_no_color_is_honoured(singers: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("check", "--database", str(address_of(singers)), "--table", "Singers")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert COLOUR.search(run_in_terminal(120, *arguments, plain=False))
    monkeypatch.setenv("NO_COLOR", "1")
    assert not COLOUR.search(run_in_terminal(120, *arguments, plain=False))


def test_a_fault_of_the_program_is_a_sentence_unless_the_traceback_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = CommandApp(name=PROGRAM)

    @broken.command("broken")
    def fail() -> None:
        raise KeyError("lost")

    def run(*arguments: str) -> int:
        monkeypatch.setattr("sys.argv", [PROGRAM, *arguments])
        return find_exit_code(broken, PROGRAM, lambda _: None)

    assert run() == 1
    assert "a fault of spanner-watcher (KeyError: 'lost'): run" in capsys.readouterr().err
    with pytest.raises(KeyError):
        run("--verbose")
