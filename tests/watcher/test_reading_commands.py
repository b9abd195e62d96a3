"""Commands that only read do so under a role that may only read: they make no table, and open no
read-write transaction. A new command has to be put into one of the lists below."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer
from fixtures.commands import CODE, run_command
from fixtures.consumers import watcher_of
from fixtures.pace import allow
from fixtures.reading_role import ReadingRole
from fixtures.replicas import CONSUMER, replicate
from fixtures.server import VARIABLE, CreateDatabase
from fixtures.singers import SINGERS, address_of, make_watchable, write_singers
from fixtures.warm_python import WarmProcess
from fixtures.watcher_threads import ChangeCollector, run_without_error
from google.cloud.spanner_v1.database import Database

from spanner_schema.model.schema import Dialect
from watcher import Watcher
from watcher.cli import app
from watcher.consumers.backups import Backup, format_backup
from watcher.consumers.moving import WholeConsumer
from watcher.consumers.positions import TABLE

SECONDS = 60
ROWS = 3
OK, USAGE, NOT_FOUND, NO_CUT = 0, 2, 4, 6
DATABASE = ("-d", "{database}")


@dataclass(frozen=True)
class Reading:
    """A way to run a command that only reads. ``codes``: how it ends where nobody has watched, and
    where somebody has. ``endless``: until it is interrupted."""

    command: str
    arguments: tuple[str, ...]
    codes: tuple[int, int] = (OK, OK)
    endless: bool = False

    def __str__(self) -> str:
        return " ".join((self.command, *(a for a in self.arguments if a.startswith("--"))))


def read(command: str, *more: str, codes: tuple[int, int] = (OK, OK), **kind: bool) -> Reading:
    return Reading(command, (*DATABASE, *more), codes, **kind)


READING = (
    read("watch", "-t", "Singers", "--once"),
    read("watch", "--stream", "Everything", "--once"),
    read("replicate", "-t", "Singers", "--to", "delta:{lake}", "--dry-run", "--consumer", CONSUMER),
    read("verify", "--to", "delta:{lake}", codes=(NO_CUT, OK)),
    read("verify", "--to", "delta:{lake}", "--repair", "--dry-run", codes=(NO_CUT, OK)),
    read("check", "-t", "Singers", "--consumer", "me"),
    read("check", "--stream", "Everything", "--consumer", "me"),
    read("status"),
    read("status", "--errors", "--shard-groups", "2", "--json"),
    read("status", "--consumer", "me", codes=(NOT_FOUND, OK)),
    read("status", "--watch", "--json", "--staleness", "0s", endless=True),
    read("page", "--port", "0", "--staleness", "0s", endless=True),
    read("ctl audit"),
    Reading("ctl backup", ("{backup}", *DATABASE, "--consumer", "me"), codes=(NOT_FOUND, OK)),
    Reading("ctl restore", ("{saved}", *DATABASE, "--other-database", "--dry-run")),
    read("ctl move", "me", "you", "--dry-run", codes=(NOT_FOUND, OK)),
    read("ctl audit", "--consumer", "me", "--limit", "3", "--json"),
    read("ctl forget", "me", "--dry-run", codes=(NOT_FOUND, OK)),
    read("ctl merge", "shared", "--dry-run", codes=(NOT_FOUND, OK)),
    read("clear", "-t", "Singers", "--dry-run", codes=(USAGE, OK)),
    read("clear", "-t", "Singers", "--explain", codes=(USAGE, OK)),
    Reading("replay", ("{letters}", "--dry-run")),
    read("ddl status"),
    read("ddl grants", "--role", "watcher", "--for", "watch", "-t", "Singers"),
    read("ddl plan", "-t", "Singers"),
    read("ddl apply", "-t", "Singers", "--shards", "4", "--dry-run"),
    read("ddl rollback", "--dry-run"),
    read("ddl lint"),
    Reading("ddl advise", ("--nodes", "1", "--peak-writes", "1000")),
    read("ddl changelog", "-t", "Singers"),
    read("ddl change-stream create", "Another", "--all"),
    read("ddl change-stream alter", "Everything", "--retention", "3d"),
    read("ddl change-stream drop", "Everything"),
)
WRITING = frozenset({"ctl pause", "ctl resume", "ctl drain", "ctl stop", "ctl replay"})
"""They store a command, in every form."""
WITHOUT_A_DATABASE_OF_THE_USER = frozenset(
    {"try", "conformance", "emulator", "demo", "spark-archive"}
    | {f"bench {each}" for each in ("run", "list", "model", "report", "compare")}
)
"""They make one, are one, or need none."""
PREVIEWS = {"--dry-run", "--explain", "--apply"}
"""Options that say that a command also has a form that only reads: without ``--apply``."""


def list_commands() -> Iterator[tuple[str, set[str]]]:
    """Every command of the parser, and its options."""

    def walk(group: object, path: tuple[str, ...]) -> Iterator[tuple[str, set[str]]]:
        subcommands = getattr(group, "commands", None)
        if subcommands is None:
            options = {name for param in group.params for name in param.opts}  # type: ignore[attr-defined]
            yield " ".join(path), options
            return
        for name, each in subcommands.items():
            yield from walk(each, (*path, name))

    return walk(typer.main.get_command(app), ())


COMMANDS = dict(list_commands())


def test_every_command_says_whether_it_reads_or_writes() -> None:
    reading = {each.command for each in READING}
    listed = [*reading, *WRITING, *WITHOUT_A_DATABASE_OF_THE_USER]
    assert sorted(listed) == sorted(COMMANDS), "put each command into one of the lists"


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - WITHOUT_A_DATABASE_OF_THE_USER))
def test_every_preview_is_among_those_that_read(command: str) -> None:
    for option in (COMMANDS[command] & PREVIEWS) - {"--apply"}:
        assert any(r.command == command and option in r.arguments for r in READING), option


SAVED = Backup("projects/p/instances/i/databases/d", TABLE, 0, WholeConsumer("saved", (), {}))
"""A consumer without a position."""


@dataclass(frozen=True)
class Scene:
    """What the commands are given."""

    database: Database
    lake: Path
    letters: Path

    def fill(self, reading: Reading) -> list[str]:
        values = {
            "database": str(address_of(self.database)),
            "lake": str(self.lake),
            "letters": str(self.letters),
            "backup": str(self.letters.with_name("backup.json")),
            "saved": str(self.letters.with_name("saved.json")),
        }
        arguments = [*reading.command.split(), *reading.arguments]
        return [each.format(**values) for each in arguments]


def prepare(create: CreateDatabase, folder: Path, dialect: Dialect, watched: bool) -> Scene:
    database = create(SINGERS, "CREATE CHANGE STREAM Everything FOR ALL")
    scene = Scene(database, folder / "lake", folder / "letters.jsonl")
    scene.letters.write_text('{"table": "Singers", "key": {"SingerId": 1}, "error": "x"}\n')
    scene.letters.with_name("saved.json").write_text(format_backup(SAVED))
    make_watchable(database)
    write_singers(database, range(ROWS), "name")
    if watched:
        watcher_of(database, [], tables=["Singers"], consumer="me").run_once()
        share(database)
        replicate(database, scene.lake, tables=["Singers"])
    return scene


def share(database: Database) -> None:
    """A shared consumer that has ended."""
    collector = ChangeCollector()
    watcher = Watcher(
        database=database.name,
        tables=["Singers"],
        consumer="shared",
        parts=2,
        start="earliest",
        interval="20ms",
    )
    watcher.on_change(collector)
    with run_without_error(watcher):
        collector.wait(ROWS)


def interrupt_after_a_line(arguments: list[str], environment: dict[str, str]) -> tuple[int, str]:
    with WarmProcess(
        ["-c", CODE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        errors = process.stderr.read()
        return process.wait(allow(SECONDS)), line + errors


def check(reading: Reading, scene: Scene, role: ReadingRole, watched: bool) -> None:
    arguments = scene.fill(reading)
    if reading.endless:
        code, shown = interrupt_after_a_line(arguments, os.environ | {VARIABLE: role.address})
    else:
        result = run_command(*arguments, **{VARIABLE: role.address})
        code, shown = result.returncode, result.stdout + result.stderr
    assert role.refused == [], shown
    assert code == reading.codes[watched], shown


def list_cases() -> Iterator[object]:
    """``ddl`` and ``replay`` ask nothing of what watchers have left."""
    for reading in READING:
        yield pytest.param(reading, False, id=f"{reading}, nobody has watched")
        if reading.command.split()[0] not in ("ddl", "replay"):
            yield pytest.param(reading, True, id=f"{reading}, watched")


@pytest.mark.parametrize(("reading", "watched"), list(list_cases()))
def test_reads_under_a_role_that_may_only_read(
    reading: Reading,
    watched: bool,
    create_database: CreateDatabase,
    dialect: Dialect,
    tmp_path: Path,
    reading_role: ReadingRole,
) -> None:
    check(reading, prepare(create_database, tmp_path, dialect, watched), reading_role, watched)


OF_OWN_TABLES = [r for r in READING if r.command.split()[0] in ("status", "ctl") and not r.endless]


@pytest.mark.parametrize("dialect", [Dialect.POSTGRESQL], indirect=True)
@pytest.mark.parametrize("watched", [False, True], ids=["nobody has watched", "watched"])
def test_reads_the_own_tables_of_the_other_dialect(
    watched: bool,
    create_database: CreateDatabase,
    dialect: Dialect,
    tmp_path: Path,
    reading_role: ReadingRole,
) -> None:
    scene = prepare(create_database, tmp_path, dialect, watched)
    for reading in OF_OWN_TABLES:
        check(reading, scene, reading_role, watched)


def test_the_role_refuses_what_writes(
    create_database: CreateDatabase, tmp_path: Path, reading_role: ReadingRole, dialect: Dialect
) -> None:
    database = prepare(create_database, tmp_path, dialect, watched=True).database
    address = str(address_of(database))
    for arguments in (
        ("ctl", "stop", "me"),
        ("ctl", "replay", "me"),
        ("ctl", "forget", "me"),
        ("ctl", "merge", "shared"),
        ("clear", "-t", "Singers"),
        ("watch", "-t", "Singers", "--once", "--consumer", "me"),
        ("ddl", "apply", "-t", "Singers", "--shards", "4"),
        ("ddl", "change-stream", "drop", "Everything", "--apply"),
    ):
        reading_role.refused.clear()
        result = run_command(*arguments, "-d", address, **{VARIABLE: reading_role.address})
        assert result.returncode != OK, arguments
        assert reading_role.refused, arguments
        assert "Traceback" not in result.stderr
