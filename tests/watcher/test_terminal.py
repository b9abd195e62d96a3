"""What commands show in terminals and pipes: whole data, one style of help, why a run has ended."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path

import pytest
from fixtures.commands import (
    run_command,
    run_in_terminal,
    run_with_reader_of_one_line,
    start_program,
)
from fixtures.consumers import consumers_of
from fixtures.pace import allow
from fixtures.singers import SINGERS, address_of, write_singers
from fixtures.warm_python import WARM_PYTHON
from google.cloud.spanner_v1.database import Database
from rich.console import Console

from watcher.consumers.states import ConsumerProgress, State
from watcher.process.terminal.console import TextConsole, print_error
from watcher.process.terminal.tables import TableColumn, choose_columns
from watcher.process.version import read_version

LONG_NAME = "a-consumer-with-a-rather-long-name-for-a-team-of-people"
STATEMENT = (
    "ALTER TABLE Singers ALTER COLUMN LastModified SET DEFAULT (PENDING_COMMIT_TIMESTAMP());"
)
FINISHED = "everything up to its start was delivered (--once)"


def where(database: Database) -> tuple[str, ...]:
    return "--database", str(address_of(database))


def watch_once(database: Database, consumer: str) -> None:
    result = run_command(
        "watch", *where(database), "-t", "Singers", "--consumer", consumer, "--once"
    )
    assert result.returncode == 0, result.stderr


# Tables and SQL.


def test_status_in_a_pipe_has_every_column_and_every_name_whole(singers: Database) -> None:
    watch_once(singers, LONG_NAME)
    shown = run_command("status", *where(singers), COLUMNS="60").stdout
    assert LONG_NAME in shown
    assert "…" not in shown
    assert re.search(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", shown)
    assert "rows behind" in shown


def test_status_on_a_narrow_terminal_has_fewer_columns_and_cuts_none(singers: Database) -> None:
    watch_once(singers, "me")
    shown = run_in_terminal(60, "status", *where(singers))
    assert "too narrow for: position" in shown
    assert "…" not in shown
    assert "finished" in shown
    table = [line for line in shown.splitlines() if line and line[0] in "┏┃┡│└"]
    assert table
    assert all(len(line) <= 60 for line in table)


def test_columns_go_in_their_order_until_the_rest_fits() -> None:
    columns = [TableColumn("name"), TableColumn("first", drop=2), TableColumn("second", drop=1)]
    rows = [("n" * 10, "f" * 10, "s" * 10)]
    assert choose_columns(columns, rows, 100) == [0, 1, 2]
    assert choose_columns(columns, rows, 30) == [0, 2]
    assert choose_columns(columns, rows, 20) == [0]
    assert choose_columns(columns, rows, 5) == [0]


@pytest.mark.ddl(SINGERS)
def test_statements_of_a_plan_are_whole_in_a_pipe_and_on_a_terminal(database: Database) -> None:
    arguments = ("ddl", "plan", *where(database), "-t", "Singers")
    assert STATEMENT in run_command(*arguments).stdout.splitlines()
    assert STATEMENT in run_in_terminal(50, *arguments).splitlines()


@pytest.mark.ddl(SINGERS)
def test_sql_is_the_statements_alone(database: Database, tmp_path: Path) -> None:
    planned = run_command("ddl", "plan", *where(database), "-t", "Singers", "--sql")
    assert STATEMENT in planned.stdout.splitlines()
    assert "--" not in planned.stdout
    schema = tmp_path / "after.sql"
    schema.write_text(f"{SINGERS};\n{planned.stdout}")
    again = run_command("ddl", "plan", "--schema", str(schema), "-t", "Singers", "--sql")
    assert (again.returncode, again.stdout) == (0, "")
    assert "nothing to do: Singers" in again.stderr
    both = run_command("ddl", "plan", "--schema", str(schema), "-t", "Singers", "--sql", "--json")
    assert both.returncode == 2


def test_a_plan_with_nothing_to_do_says_so(singers: Database) -> None:
    result = run_command("ddl", "plan", *where(singers), "-t", "Singers")
    assert (result.returncode, result.stdout) == (0, "")
    assert "nothing to do: Singers" in result.stderr


def test_brackets_are_text(capsys: pytest.CaptureFixture[str]) -> None:
    TextConsole().print("SELECT a[offset(0)], [b] FROM [/t]")
    assert capsys.readouterr().out == "SELECT a[offset(0)], [b] FROM [/t]\n"


def test_no_error_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    print_error(" ")
    assert re.fullmatch(r"error: \w.+\n", capsys.readouterr().err)


# Help.

COMMANDS = [
    "",
    "try",
    "watch",
    "check",
    "status",
    "page",
    "clear",
    "replay",
    "spark-archive",
    "emulator",
    "demo",
    "ctl",
    "ctl pause",
    "ctl forget",
    "ddl",
    "ddl status",
    "ddl plan",
    "ddl apply",
    "ddl rollback",
    "ddl lint",
    "ddl advise",
    "ddl changelog",
    "ddl change-stream",
    "ddl change-stream create",
    "bench",
    "bench run",
    "bench list",
    "bench model",
    "bench report",
    "bench compare",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_whole_and_of_one_style(command: str) -> None:
    result = run_command(*command.split(), "--help", COLUMNS="50")
    assert result.returncode == 0
    shown = result.stdout
    assert shown.startswith(f"Usage: spanner-watcher{' ' * bool(command)}{command} [OPTIONS]")
    assert not re.search(r"<\w", shown), "a type of Python instead of a name"
    assert not re.search(r"\w\.\.\.$", shown, re.MULTILINE), "a description that is cut"
    if "--database ADDRESS" in shown and not command.startswith("bench"):
        assert "spanner://projects/P/instances/I/databases/D" in shown


def test_brackets_of_help_are_shown() -> None:
    assert "[delivery.envelope_options]" in run_command("watch", "--help").stdout
    assert "[defaults]," in run_command("ddl", "plan", "--help").stdout


def test_the_version_is_shown() -> None:
    result = run_command("--version")
    assert (result.returncode, result.stdout) == (0, f"spanner-watcher {read_version()}\n")


def test_bench_without_a_command_shows_its_help_and_no_error() -> None:
    result = run_command("bench")
    assert (result.returncode, result.stderr) == (2, "")
    assert "compare" in result.stdout


# Watching.


def test_watch_on_a_terminal_says_what_since_when_as_whom_and_how_to_stop(
    singers: Database,
) -> None:
    arguments = ("watch", *where(singers), "-t", "Singers", "--once")
    shown = run_in_terminal(100, *arguments, "--consumer", "me")
    assert f"watching Singers of {address_of(singers)} by polling every 1 s" in shown
    assert re.search(r"since \d{4}-.*Z, as consumer 'me'", shown)
    assert "ends by itself (--once)" in shown
    assert "no position is saved" in run_in_terminal(100, *arguments, "--from", "earliest")
    assert run_command(*arguments).stderr == ""


def test_a_reader_that_has_gone_ends_watch_at_once_and_quietly(singers: Database) -> None:
    write_singers(singers, range(2_000), "name")
    line, errors, code = run_with_reader_of_one_line(
        "watch", *where(singers), "-t", "Singers", "--consumer", "me", "--from", "earliest"
    )
    assert json.loads(line)["table"] == "Singers"
    assert (errors, code) == ("", 141)
    status = consumers_of(singers).status("me")
    assert status is not None
    assert (status.state, status.reason) == (State.STOPPED, "the reader of its output has gone")
    assert not status.alive


def test_a_reader_that_has_gone_ends_a_watch_of_idle_tables(singers: Database) -> None:
    write_singers(singers, [1], "name")
    _, errors, code = run_with_reader_of_one_line(
        "watch", *where(singers), "-t", "Singers", "--from", "earliest"
    )
    assert (errors, code) == ("", 141)


def test_a_reader_that_has_gone_ends_other_commands_quietly() -> None:
    program = (
        "import os, sys; r, w = os.pipe(); os.close(r); os.dup2(w, 1);"
        " from watcher.cli import main; main()"
    )
    for arguments in (["--help"], ["ddl", "advise", "--nodes", "3", "--peak-writes", "20000"]):
        result = subprocess.run(
            [*WARM_PYTHON, "-c", program, *arguments],
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        assert (result.returncode, result.stderr) == (141, "")


# How a run ended.


def test_status_says_when_and_why_a_consumer_has_ended(singers: Database) -> None:
    watch_once(singers, "me")
    (row,) = json.loads(run_command("status", *where(singers), "--json").stdout)["consumers"]
    assert (row["state"], row["reason"], row["lag_seconds"]) == ("STOPPED", FINISHED, None)
    shown = run_command("status", *where(singers)).stdout
    assert re.search(rf"me: finished, for [\d.]+ s: {re.escape(FINISHED)}", shown)


def test_a_consumer_that_starts_again_has_no_reason_to_have_ended(singers: Database) -> None:
    consumers = consumers_of(singers)
    watch_once(singers, "me")
    lease = consumers.acquire("me")
    (status,) = consumers.list_all()
    assert status.reason is None
    consumers.release(lease, State.NOT_STARTED, ConsumerProgress())  # as releases before 0.2 did
    shown = run_command("status", *where(singers)).stdout
    assert "stopped" in shown


# Names that do not exist.


def test_the_same_error_has_the_same_code_in_every_command(singers: Database) -> None:
    watch_once(singers, "me")
    table = [
        ("watch", "-t", "Singer", "--once"),
        ("clear", "-t", "singer"),
        ("ddl", "plan", "-t", "Singer"),
        ("ddl", "status", "-t", "Singer"),
        ("ddl", "changelog", "-t", "Singer"),
        ("ddl", "change-stream", "create", "S", "--watch", "Singer"),
    ]
    for arguments in table:
        result = run_command(*arguments, *where(singers))
        assert (result.returncode, result.stdout) == (4, ""), arguments
        assert "did you mean 'Singers'?" in result.stderr
    for arguments in [
        ("watch", "-t", "Singers", "--stream", "Nope", "--once"),
        ("ddl", "change-stream", "drop", "Nope"),
        ("ctl", "stop", "nobody"),
        ("ctl", "forget", "nobody"),
        ("status", "--consumer", "nobody"),
    ]:
        assert run_command(*arguments, *where(singers)).returncode == 4, arguments


def test_lists_of_tables_leave_the_products_own_out(singers: Database) -> None:
    watch_once(singers, "me")
    for arguments in (("watch", "-t", "Zzz", "--once"), ("ddl", "status", "-t", "Zzz")):
        result = run_command(*arguments, *where(singers))
        assert "Singers" in result.stderr
        assert "SpannerWatcher" not in result.stderr


@pytest.mark.parametrize("command", [("emulator", "--database"), ("ddl", "status", "-d")])
@pytest.mark.parametrize(
    ("address", "rule"),
    [
        ("projects/p/instances/i/databases/my-database", "the instance id 'i' must have 2 to 64"),
        ("projects/p/instances/my-instance/databases/d", "the database id 'd' must have 2 to 30"),
        ("projects/p/instances/my_instance/databases/db", "the instance id 'my_instance' must"),
        ("projects/P/instances/my-instance/databases/db", "'P' is not the id of a project"),
    ],
)
def test_an_address_that_no_database_can_have_is_refused_before_any_call(
    command: tuple[str, ...], address: str, rule: str
) -> None:
    result = run_command(*command, address, SPANNER_EMULATOR_HOST="127.0.0.1:1")
    assert (result.returncode, result.stdout) == (2, "")
    assert rule in result.stderr


# The first minute.


def test_try_shows_changes_and_what_to_do_next() -> None:
    result = run_command("try", "--rows", "4")
    assert (result.returncode, result.stderr) == (0, "")
    assert len(re.findall(r"UPSERT Singers \{", result.stdout)) == 4
    assert "4 changes have arrived" in result.stdout
    assert "spanner-watcher ddl apply" in result.stdout


def test_try_prints_json_alone_and_ends_by_itself() -> None:
    result = run_command("try", "--seconds", str(allow(4)), "--json")
    assert (result.returncode, result.stderr) == (0, "")
    first, *_ = map(json.loads, result.stdout.splitlines())
    assert (first["table"], first["key"]) == ("Singers", {"SingerId": 1})


def test_ctrl_c_ends_try_quietly() -> None:
    with start_program("try") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "UPSERT" in line:
                break
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=allow(60))
    assert (process.returncode, errors) == (0, "")
    assert "everything has ended" in output


def test_a_console_of_another_width_is_not_cut_where_there_is_no_terminal() -> None:
    assert TextConsole().width > 10_000 or Console().is_terminal
