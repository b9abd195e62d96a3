"""The command as a user runs it: changes as JSON lines, clearing, and clear words for bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import typer.main
from fixtures.commands import run_command
from fixtures.singers import address_of, capture_of, write_singers
from fixtures.warm_python import SOCKET
from google.cloud.spanner_v1.database import Database

from ddl.migration.apply import read_schema
from emulator.command import DEFAULT_PORT
from emulator.ports import find_port
from watcher.cli import app, clear, emulator, options
from watcher.cli.config import load_config
from watcher.consumers.clearing import Method
from watcher.consumers.positions import TABLE
from watcher.model.window import Window
from watcher.process.extras import EXTRAS
from watcher.process.failpoints import VARIABLE


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_command(*arguments, **({"COLUMNS": "200"} | environment))


def lines(result: subprocess.CompletedProcess[str]) -> list[dict[str, object]]:
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def watch(database: Database, *more: str, **environment: str) -> subprocess.CompletedProcess[str]:
    where = ("--database", str(address_of(database)), "--table", "Singers")
    return run("watch", *where, "--once", *more, **environment)


def test_watch_prints_every_change_once_and_remembers_its_consumer(singers: Database) -> None:
    consumer = ("--consumer", "printer", "--from", "earliest")
    write_singers(singers, [1, 2, 3], "first")
    changes = lines(watch(singers, *consumer))
    assert {c["key"]["SingerId"]: c["values"]["LastName"] for c in changes} == {  # type: ignore[index]
        1: "first",
        2: "first",
        3: "first",
    }
    assert lines(watch(singers, *consumer)) == []
    write_singers(singers, [2], "second")
    (change,) = lines(watch(singers, *consumer))
    assert change["table"] == "Singers"
    assert change["key"] == {"SingerId": 2}
    assert change["values"]["LastName"] == "second"  # type: ignore[index]


def test_watch_prints_the_records_of_an_envelope(singers: Database) -> None:
    write_singers(singers, [1, 2], "first")
    records = lines(watch(singers, "--from", "earliest", "--envelope", "debezium"))
    events = sorted(records, key=lambda line: str(line["key"]))
    assert [event["key"] for event in events] == [{"SingerId": 1}, {"SingerId": 2}]
    assert {event["value"]["after"]["LastName"] for event in events} == {"first"}  # type: ignore[index]


def test_a_crash_between_delivery_and_position_delivers_the_same_changes_again(
    singers: Database, tmp_path: Path
) -> None:
    config = tmp_path / "watch.toml"
    config.write_text('lease = "3s"\n')
    consumer = ("--consumer", "crasher", "--from", "earliest", "--config", str(config))
    write_singers(singers, range(20), "name")
    crashed = watch(singers, *consumer, **{VARIABLE: "after-delivery-before-position"})
    assert crashed.returncode == -9
    before = {json.loads(line)["id"] for line in crashed.stdout.splitlines()}
    after = {change["id"] for change in lines(watch(singers, *consumer))}
    assert before == after
    assert len(after) == 20


def test_clear_counts_first_and_then_empties_the_index(singers: Database) -> None:
    where = ("--database", str(address_of(singers)), "--table", "Singers", "--json")
    write_singers(singers, range(10), "name")
    refused = run("clear", *where)
    assert refused.returncode == 2
    assert "no consumer of Singers is registered" in refused.stderr
    lines(watch(singers, "--consumer", "reader", "--from", "earliest"))
    (counted,) = lines(run("clear", *where, "--dry-run"))
    assert (counted["rows"], counted["dry_run"]) == (10, True)
    (cleared,) = lines(run("clear", *where))
    assert (cleared["rows"], cleared["slowest_consumer"]) == (10, "reader")
    capture = capture_of(singers)
    assert capture.count(Window(0, capture.look(0)[0].end)) == 0


BAD = [
    pytest.param(
        ("ddl", "apply", "-d", "{db}", "-t", "Singer"), 4, "did you mean 'Singers'", id="table"
    ),
    pytest.param(
        ("ddl", "apply", "-d", "{db}", "-t", "Documents"),
        2,
        "no primary key column to hash into shards",
        id="key that cannot be sharded",
    ),
    pytest.param(
        ("ddl", "apply", "-d", "{db}", "-t", "Singers", "--shards", "0"),
        2,
        "option 'shards': 0 is too small: use 1 or more",
        id="shard count 0",
    ),
    pytest.param(
        ("ddl", "apply", "-d", "{db}", "-t", "Singers", "--shard-kee", "SingerId"),
        2,
        "--shard-key",
        id="misspelt option",
    ),
    pytest.param(
        ("ddl", "apply", "-d", "{db}-missing", "-t", "Singers"),
        4,
        "does not exist",
        id="database that does not exist",
    ),
    pytest.param(
        ("ddl", "apply", "-d", "projects/p/databases/d", "-t", "Singers"),
        2,
        "does not name a database",
        id="address that is none",
    ),
    pytest.param(("watch", "-d", "{db}", "-t", "Singer"), 4, "has no table Singer", id="watch"),
    pytest.param(
        ("watch", "-d", "{db}", "-t", "Singers"),
        5,
        "spanner-watcher ddl apply",
        id="table that is not watchable",
    ),
    pytest.param(
        ("watch", "-d", "{db}", "-t", "Singers", "--interval", "soon"),
        2,
        "invalid duration 'soon'",
        id="interval that is none",
    ),
    pytest.param(
        ("watch", "-d", "{db}", "-t", "Singers", "--envelope", "debezum"),
        2,
        "did you mean 'debezium'",
        id="misspelt envelope",
    ),
    pytest.param(
        ("watch", "-d", "{db}", "-t", "Singers", "--envelope", "change-stream"),
        2,
        "capture with a change stream, or choose another envelope",
        id="envelope that polling cannot fill",
    ),
    pytest.param(
        ("watch", "-d", "{db}", "-t", "Singers", "--envelope", "datastream-avro"),
        2,
        "is binary and cannot be written as lines",
        id="envelope that is no text",
    ),
    pytest.param(
        ("watch", "-d", "{db}", "-t", "Sing*", "--envelope", "ydb"),
        2,
        "watch one table, by its full name",
        id="envelope that does not name its table",
    ),
    pytest.param(
        ("clear", "-d", "{db}", "-t", "Singers"), 5, "spanner-watcher ddl apply", id="clear"
    ),
]

SCHEMA = (
    """CREATE TABLE Singers (SingerId INT64, LastName STRING(200)) PRIMARY KEY (SingerId)""",
    """CREATE TABLE Documents (
      Ts TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp = true), Body STRING(MAX)
    ) PRIMARY KEY (Ts)""",
)


@pytest.mark.ddl(*SCHEMA)
@pytest.mark.parametrize(("arguments", "code", "words"), BAD)
def test_bad_input_is_one_clear_sentence_and_changes_nothing(
    database: Database, arguments: tuple[str, ...], code: int, words: str
) -> None:
    before = read_schema(database)
    address = str(address_of(database))
    result = run(*(each.replace("{db}", address) for each in arguments))
    assert result.returncode == code, result.stderr
    assert words in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert result.stdout == ""
    assert read_schema(database) == before


def test_a_server_that_is_not_there_is_said_within_seconds() -> None:
    address = "spanner://projects/p1/instances/instance/databases/d1"
    result = run(
        "watch", "-d", address, "-t", "Singers", SPANNER_EMULATOR_HOST=f"127.0.0.1:{find_port()}"
    )
    assert result.returncode == 3
    assert "nothing answers at SPANNER_EMULATOR_HOST" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "command", [(), ("ddl",), ("ddl", "plan"), ("ddl", "apply"), ("watch",), ("clear",), ("demo",)]
)
def test_every_command_explains_itself(command: tuple[str, ...]) -> None:
    result = run(*command, "--help")
    assert result.returncode == 0
    assert "Usage" in result.stdout


HEAVY = {"google.cloud.spanner_v1", "numpy", "pyarrow", "pydantic", "pyspark", "sqlglot"}


@pytest.mark.parametrize(
    "command",
    [
        (),
        ("watch",),
        ("clear",),
        ("emulator",),
        ("demo",),
        ("ddl",),
        ("ddl", "plan"),
        ("ctl",),
        ("bench",),
        ("conformance",),
    ],
)
def test_help_loads_nothing_that_a_command_needs_to_run(command: tuple[str, ...]) -> None:
    program = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr));"
        " from watcher.cli import main; main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, *command, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    modules = set(result.stderr.split())
    assert "watcher.cli" in modules
    assert not HEAVY & modules


WALK = """
import sys, typer.main
from watcher.cli import app

def walk(command):
    return [command.help, *map(walk, getattr(command, "commands", {}).values())]

walk(typer.main.get_command(app))
print(*[each.replace(" (declared)", "") for each in sys.modules if "(declared)" in each])
print(*sys.modules)
"""


def test_no_file_of_a_command_loads_what_it_needs_to_run() -> None:
    shown = subprocess.run([sys.executable, "-c", WALK], capture_output=True, text=True, check=True)
    declared, loaded = shown.stdout.splitlines()
    assert {"watcher.cli.ddl.migrate", "benchmarks.cli.run", "conformance.cli"} <= {
        *declared.split()
    }
    assert not HEAVY & {*loaded.split()}


def test_what_the_help_repeats_is_what_the_code_says() -> None:
    assert options.POSITIONS_TABLE == TABLE
    assert get_args(clear.MethodName) == tuple(Method)
    assert emulator.DEFAULT_PORT == DEFAULT_PORT


def test_flags_that_are_given_override_the_file(tmp_path: Path) -> None:
    """0 is a value; a flag that is left out, and the default of one that has one, are not."""
    file = tmp_path / "watch.toml"
    file.write_text(
        'database = "spanner://projects/p-1/instances/i-1/databases/d-1"\nexclude = ["X"]\n'
        'standby = true\npage.port = 9\npage.host = "::1"\npositions.table = "Mine"\n'
    )
    given: dict[str, object] = {
        "page.port": 0,
        "page.host": None,
        "exclude": [],
        "standby": False,
        "tables": ["A"],
    }
    stored = {"positions.table": TABLE, "stream.name": "S"}
    config = load_config(file, given | stored)
    assert config.page is not None
    assert (config.page.port, config.page.host, config.positions.table) == (0, "::1", "Mine")
    assert (config.exclude, config.standby, config.tables) == (("X",), True, ("A",))
    assert (config.capture, config.stream.name) == ("change-stream", "S")


def test_a_group_without_a_command_shows_its_help() -> None:
    result = run("ctl")
    assert (result.returncode, result.stderr) == (2, "")
    assert "forget" in result.stdout


HIDE = """\
import sys
from importlib.machinery import PathFinder

class HidingFinder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name in {modules!r} else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = HidingFinder
"""
"""A ``sitecustomize`` that makes modules look as if they were not installed."""


@pytest.mark.parametrize(
    ("command", "modules", "advice"),
    [
        (("try",), ("apsw",), "run pip install 'spanner-watcher[emulator]'"),
        (
            ("emulator",),
            ("apsw",),
            "run pip install 'spanner-watcher[emulator]'",
        ),
        (("conformance",), ("apsw",), "run pip install 'spanner-watcher[emulator]'"),
        (("demo",), ("apsw", "pyspark"), "run pip install 'spanner-watcher[emulator,spark]'"),
        (("bench", "list"), ("psutil",), "run pip install 'spanner-watcher[bench]'"),
    ],
)
def test_a_missing_extra_is_named_with_the_command_that_installs_it(
    command: Sequence[str], modules: Sequence[str], advice: str, tmp_path: Path
) -> None:
    result = run_without(modules, tmp_path, *command)
    assert result.returncode == 2
    assert result.stderr == f"error: missing libraries ({', '.join(modules)}): {advice}\n"


def run_without(
    modules: Sequence[str], folder: Path, *command: str
) -> subprocess.CompletedProcess[str]:
    (folder / "sitecustomize.py").write_text(HIDE.format(modules=tuple(modules)))
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    return run(*command, PYTHONPATH=path, **{SOCKET: ""})


@pytest.mark.parametrize(
    "command",
    [("bench", "--help"), ("bench", "run", "--help"), ("bench", "model", "--nodes", "200")],
)
def test_the_model_and_the_help_of_benchmarks_need_no_extra(
    command: Sequence[str], tmp_path: Path
) -> None:
    result = run_without(EXTRAS["bench"], tmp_path, *command)
    assert (result.returncode, result.stderr) == (0, "")


def test_packages_that_are_not_installed_are_no_commands(tmp_path: Path) -> None:
    """As in the image, which has none of them."""
    shown = run_without(("benchmarks", "conformance", "emulator"), tmp_path, "--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "watch" in shown.stdout
    assert "bench " not in shown.stdout
    refused = run_without(("benchmarks",), tmp_path, "bench", "model")
    assert refused.returncode == 2
    assert "No such command 'bench'" in refused.stderr


def iterate_commands(command: Any) -> Iterator[Any]:
    yield command
    for each in getattr(command, "commands", {}).values():
        yield from iterate_commands(each)


def test_no_option_has_a_type_of_its_own_command() -> None:
    """The parser and the command that runs have two modules of one file: a value of the one is
    not a value of the other's type."""
    commands = list(iterate_commands(typer.main.get_command(app)))
    assert len(commands) > 30
    for command in commands:
        hints = get_type_hints(command.callback) if command.callback is not None else {}
        types = [each for hint in hints.values() for each in (hint, *get_args(hint))]
        assert not [each for each in types if "declared" in getattr(each, "__module__", "")]
