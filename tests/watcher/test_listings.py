"""Every listing of the documentation is executed, or read by the product, or says why it is not."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import typer.main
from fixtures.documented import transfer
from fixtures.listings import (
    ALL,
    DOCS,
    EXECUTED,
    NOT_EXECUTED,
    READ,
    ROOT,
    Listing,
    follow,
    list_pages,
    read_listings,
)
from fixtures.server import connect
from fixtures.singers import SINGERS, make_watchable, write_singers
from google.cloud import spanner
from google.cloud.spanner_v1.database import Database
from pydantic.alias_generators import to_camel

from ddl.rules.evolve import parse_schema
from emulator.process import ServerProcess
from spanner_schema.model.errors import DdlError
from spanner_schema.model.options import WatchFile
from spanner_schema.syntax.parse import parse_script
from watcher.cli import app
from watcher.model.errors import WatcherError
from watcher.settings.spark import SourceOptions
from watcher.settings.watcher import WatchConfig, parse_watch_config

OF_DDL = "settings of ddl"
ADDRESS = "spanner://projects/my-project/instances/my-instance/databases/my-database"
BUILTINS = ("cd", "exit", "export", "kill", "mv", "set", "unset")
SINK_OPTIONS = {"checkpointLocation", "path"}
PACKAGES = ("ddl", "emulator", "watcher", "conformance")
PROGRAMS = ("docker", "gcloud", "make", "pip", "python", "spanner-watcher", "spark-submit")
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def name_place(listing: Listing) -> str:
    return listing.place


def is_executed(listing: Listing) -> bool:
    """True if the test that the mark names is there."""
    match = EXECUTED.match(listing.mark)
    if match is None:
        return False
    path, test = match.groups()
    assert f"\ndef {test}(" in (ROOT / path).read_text(), f"{listing.place}: no test {test}"
    return True


def split_commands(text: str) -> Iterator[list[str]]:
    """The commands of a listing as words, without comments and operators."""
    joined = text.replace("\\\n", " ").replace("$D", ADDRESS)
    for line in joined.splitlines():
        words: list[str] = []
        lexer = shlex.shlex(line, posix=True, punctuation_chars="&|;<>")
        lexer.whitespace_split = True
        for word in lexer:
            if set(word) <= set("&|;"):
                yield from [words] if words else []
                words = []
            else:
                words.append(word)
        yield from [words] if words else []


def parse_command(arguments: list[str]) -> None:
    """Reads the arguments of ``spanner-watcher`` as the program itself does."""
    name, command = "spanner-watcher", typer.main.get_command(app)
    while arguments and arguments[0] in getattr(command, "commands", {}):
        name, command = f"{name} {arguments[0]}", command.commands[arguments[0]]  # type: ignore[attr-defined]
        arguments = arguments[1:]
    assert not hasattr(command, "commands"), f"{name} has no command {arguments[:1]}"
    command.make_context(name, list(arguments))


def check_python_command(words: list[str], listing: Listing) -> None:
    """A module, a program in a line, or a file of the project or of the page."""
    arguments = iter(words)
    first = next(arguments)
    if first == "-m":
        assert importlib.util.find_spec(next(arguments)) is not None, words
    elif first == "-c":
        compile(next(arguments), listing.place, "exec")
    else:
        titles = {each.title for each in read_listings(listing.page)}
        assert first in titles or (ROOT / first).exists(), words


def check_command(words: list[str], listing: Listing) -> None:
    """Fails for a command that is wrong, or that nothing here can read, unless the listing says
    so."""
    while words and re.match(r"[A-Z_]+=", words[0]):
        words = words[1:]
    if not words or words[0] in BUILTINS:
        return
    program, *arguments = words
    if program == "spanner-watcher":
        parse_command(arguments)
    elif NOT_EXECUTED.match(listing.mark):
        return
    elif program in ("python", "python3"):
        check_python_command(arguments, listing)
    elif program == "make":
        assert {each for each in arguments if "=" not in each} <= TARGETS, words
    elif program == "pip":
        for extras in re.findall(r"spanner-watcher\[([\w,]+)\]", " ".join(arguments)):
            assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"]), extras
    else:
        pytest.fail(f"mark the listing: nothing reads '{program}'")


def check_shell(listing: Listing) -> None:
    """Every command can be read; a listing of commands that no test runs says why."""
    assert listing.mark, "mark the listing: executed, or read, with the reason"
    for words in split_commands(listing.text):
        check_command(words, listing)


SECRET_FILE = re.compile(r'file = "/run/secrets/[^"]*"')
"""That of a reader's machine: here it is another one."""


def check_toml(listing: Listing) -> None:
    values = tomllib.loads(SECRET_FILE.sub(f'file = "{__file__}"', listing.text))
    if listing.mark == OF_DDL:
        file = WatchFile.model_validate(values)
        for table in ["", *file.table]:
            file.options_for(table)
    else:
        parse_watch_config({"database": ADDRESS} | values)


def check_sql(listing: Listing) -> None:
    if not is_executed(listing) and not NOT_EXECUTED.match(listing.mark):
        assert parse_script(listing.text)


def check_python(listing: Listing) -> None:
    """Names of ours exist; whether it runs is for the test that its mark names."""
    tree = ast.parse(listing.text)
    assert is_executed(listing) or NOT_EXECUTED.match(listing.mark), "mark the listing"
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] in PACKAGES:
            for alias in node.names:
                assert is_importable(str(node.module), alias.name), alias.name
        elif isinstance(node, ast.Call):
            check_call(node)


def is_importable(module: str, name: str) -> bool:
    """True if ``from module import name`` works."""
    if hasattr(importlib.import_module(module), name):
        return True
    return importlib.util.find_spec(f"{module}.{name}") is not None


def check_call(call: ast.Call) -> None:
    """The names of settings exist."""
    known = {to_camel(name) for name in SourceOptions.model_fields}
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
    keywords = {str(each.arg) for each in call.keywords}
    if name == "options":
        assert keywords <= known, keywords - known
    elif name == "option" and isinstance(call.args[0], ast.Constant):
        assert call.args[0].value in known | SINK_OPTIONS
    elif name == "Watcher":
        assert keywords <= set(WatchConfig.model_fields)


def check_json(listing: Listing) -> None:
    json.loads(listing.text)


def check_other(listing: Listing) -> None:
    """A listing of another kind must not hide commands."""
    first_words = {line.split(" ")[0] for line in listing.text.splitlines()}
    assert listing.kind == "dockerfile" or first_words.isdisjoint(PROGRAMS), (
        "make it a listing 'sh'"
    )


CHECKS = {
    "bash": check_shell,
    "json": check_json,
    "python": check_python,
    "sh": check_shell,
    "sql": check_sql,
    "toml": check_toml,
}


@pytest.mark.parametrize("listing", ALL, ids=name_place)
def test_a_listing_is_right(listing: Listing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    known = any(each.match(listing.mark) for each in (EXECUTED, NOT_EXECUTED, READ))
    assert not listing.mark or listing.mark == OF_DDL or known, f"unknown mark: {listing.mark}"
    if is_executed(listing) and listing.kind != "python":
        return
    CHECKS.get(listing.kind, check_other)(listing)


WRONG = (AssertionError, pytest.fail.Exception, WatcherError, DdlError, typer.TyperException)


def make_listing(kind: str, text: str, mark: str = "") -> Listing:
    return Listing(ROOT / "README.md", 1, kind, "", mark, text)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("python", "print(1)\n"),
        ("sh", "frobnicate --now\n"),
        ("sh", "spanner-watcher watch --tabel Singers\n"),
        ("sh", "spanner-watcher wach\n"),
        ("sh", "make nothing\n"),
        ("sh", "pip install 'spanner-watcher[nothing]'\n"),
        ("toml", "tabels = ['*']\n"),
        ("sql", "CREATE TABEL Singers\n"),
        ("", "spanner-watcher watch\n"),
    ],
)
def test_a_listing_that_is_wrong_is_found(kind: str, text: str) -> None:
    with pytest.raises(WRONG):
        CHECKS.get(kind, check_other)(make_listing(kind, text, "read: a reason that is given"))


def test_commands_that_no_test_runs_say_why() -> None:
    with pytest.raises(AssertionError, match="mark the listing"):
        check_shell(make_listing("sh", "make check\n"))


@pytest.mark.parametrize(
    "text",
    [
        "from watcher import Nobody\n",
        'spark.readStream.format("spanner-changes").options(tabel="Singers")\n',
        "Watcher(databse='projects/p1/instances/i1/databases/d1')\n",
        "print(\n",
    ],
)
def test_a_listing_that_is_not_executed_is_read(text: str) -> None:
    with pytest.raises((AssertionError, SyntaxError)):
        check_python(make_listing("python", text, "not executed: needs a database"))


# Listings of Python, executed.


@pytest.fixture
def documented(server: ServerProcess) -> Iterator[Database]:
    """The database of the listings: Singers is watchable, Songs has change sets."""
    connect(server.address)
    client = spanner.Client(project="my-project", disable_builtin_metrics=True)
    config = f"{client.project_name}/instanceConfigs/emulator-config"
    instance = client.instance("my-instance", configuration_name=config, node_count=1)
    if not instance.exists():
        instance.create().result(30)
    database: Database = instance.database(
        "my-database",
        ddl_statements=[
            SINGERS,
            "CREATE TABLE CHANGE_SETS (ChangeSetId STRING(36), CommitTimestamp TIMESTAMP"
            " OPTIONS (allow_commit_timestamp = true)) PRIMARY KEY (ChangeSetId)",
            "CREATE TABLE Songs (Id INT64, Title STRING(MAX), ChangeSetId STRING(36))"
            " PRIMARY KEY (Id)",
        ],
    )
    database.create().result(60)
    make_watchable(database)
    yield database
    database.drop()


def list_python(page: str, *texts: str) -> list[str]:
    """The Python listings of a page that contain one of the texts."""
    listings = [each for each in read_listings(DOCS / page) if each.kind == "python"]
    chosen = [each.text for each in listings if any(text in each.text for text in texts)]
    assert len(chosen) == len(texts)
    return chosen


def execute(text: str, **names: Any) -> dict[str, Any]:
    """Executes a listing up to now, where it would run for ever; its names."""
    exec(compile(text.replace(".run()", ".run_once()"), "listing", "exec"), names)
    return names


def test_the_listing_of_a_watcher_delivers_changes(
    documented: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    (program,) = list_python("watch.md", "watcher.on_change(print)")
    execute(program)  # registers the consumer, which begins now
    write_singers(documented, [1, 2], "new")
    execute(program)
    assert capsys.readouterr().out.count("<Change ") == 2


def test_the_listings_of_loops_deliver_changes(
    documented: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, asynchronous = list_python("watch.md", "    for change in changes", "async for change")
    execute(plain)  # registers the consumer, which begins now
    for number, program in enumerate((plain, asynchronous)):
        write_singers(documented, [1, 2], f"new {number}")
        execute(program)
        assert capsys.readouterr().out.count("<Change ") == 2


def test_the_listing_of_change_sets_writes_rows_and_their_sets(documented: Database) -> None:
    (program,) = list_python("watch.md", "ChangeSets")
    execute(program, database=documented)
    with documented.snapshot(multi_use=True) as snapshot:
        sql = "SELECT Title, CommitTimestamp FROM Songs JOIN CHANGE_SETS USING (ChangeSetId)"
        ((title, timestamp),) = snapshot.execute_sql(sql)
        ((sets,),) = snapshot.execute_sql("SELECT COUNT(*) FROM CHANGE_SETS")
    assert title == "uno"
    assert timestamp is not None
    assert sets == 2


def test_the_listing_of_ddl_plans_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = list_python("ddl.md", "make_plan")
    execute(program)
    assert "ALTER TABLE" in capsys.readouterr().out


def test_the_commands_of_a_postgresql_database(tmp_path: Path) -> None:
    mark = "test_the_commands_of_a_postgresql_database"
    steps = [each for each in read_listings(DOCS / "ddl.md") if mark in each.mark]
    (output,) = follow(steps, tmp_path)
    (shown,) = [each.text for each in steps if each.kind == "sql" and not each.title]
    lines = output.splitlines()
    assert [line for line in lines if line in shown.splitlines()] == shown.splitlines()
    assert "TTL INTERVAL '30 days' ON changed_at" in output
    assert 'CREATE CHANGE STREAM rows FOR singers("Group")' in output
    assert "DROP INDEX singers_by_shard_and_time;" in output


def test_the_listing_of_the_embedded_server_has_its_names() -> None:
    (program,) = list_python("emulator.md", "from emulator import start")
    names = execute(program)
    assert callable(names["start"])
    assert callable(names["spawn"])


class Messages(list[tuple[str, bytes, bytes | None]]):
    """What a producer was given."""

    def send(self, topic: str, *, key: bytes, value: bytes | None) -> None:
        self.append((topic, key, value))


def test_the_listing_of_envelopes_encodes_changes() -> None:
    (program,) = list_python("envelopes.md", "make_envelope")
    producer = Messages()
    change, _ = transfer()[-1]
    execute(program, changes=[change], producer=producer, topic="accounts")
    ((topic, key, _),) = producer
    assert topic == "accounts"
    assert json.loads(key)["payload"] == {"AccountId": "Id1"}


def test_every_schema_in_a_listing_can_be_read() -> None:
    (listing,) = [
        each
        for each in read_listings(DOCS / "tutorials" / "without-spark.md")
        if each.kind == "sql"
    ]
    assert [table.name for table in parse_schema(listing.text).tables] == ["Singers"]


FENCES = re.compile(r"^[ >]*(?:```|~~~)", re.MULTILINE)


@pytest.mark.parametrize("page", list_pages(), ids=lambda page: page.name)
def test_no_listing_of_a_page_is_overlooked(page: Path) -> None:
    """Also one that is indented, quoted, or has other fences."""
    assert len(FENCES.findall(page.read_text())) == 2 * len(read_listings(page))


def test_pages_are_read_as_they_are_written(tmp_path: Path) -> None:
    text = '<!-- listing: not executed: a reason -->\n```sh title="a"\nls\n```\n\n```\nx\n```\n'
    (tmp_path / "page.md").write_text(text)
    first, second = read_listings(tmp_path / "page.md")
    assert (first.kind, first.title, first.mark) == ("sh", "a", "not executed: a reason")
    assert (first.text, second.text, second.mark) == ("ls\n", "x\n", "")
