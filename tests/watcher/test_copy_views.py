"""``where`` and masks of copies, against what the tests have written: which rows a copy has, and
what in place of their values. ``verify`` compares after each window."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fixtures.changing_schemas import change_schema
from fixtures.consumers import expire_lease
from fixtures.copy_views import CAPTURES, MASKS, STREAM, WHERE, People, check, compare, sign
from fixtures.replicas import (
    CONSUMER,
    adopt_newest,
    make_replicator,
    open_table,
    read_delta,
    replicate,
)
from fixtures.singers import address_of
from fixtures.warm_python import WARM_PYTHON
from typer.testing import CliRunner

from watcher.cli import app
from watcher.model.errors import ConfigurationError, NotWatchableError, ReplicaError
from watcher.process.failpoints import VARIABLE
from watcher.replica.cuts.modes import HISTORY, KEEP_DELETED, Mode
from watcher.replica.cuts.stored import FORMAT_OF_VIEWS
from watcher.replica.reading import as_of


def options(capture: str = "poll", **table: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"where": WHERE, "masks": MASKS, "exclude_columns": ["Age"]} | table
    more: dict[str, Any] = {"tables": ["People"], "mask_key": {"env": "MASK_KEY"}}
    if capture != "poll":
        more |= {"capture": "change-stream", "stream": {"name": "S"}}
    return more | {"table": {"People": spec}}


def copy(
    people: People, folder: Path, capture: str = "poll", format_: str = "delta", **replica: Any
) -> list[Any]:
    deletes = {"deletes": "compare"} if capture == "poll" else {}
    to: dict[str, Any] = {"to": f"{format_}:{folder}"} | deletes | replica
    return replicate(people.database, folder, **options(capture), replica=to)


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_copy_has_the_rows_of_its_condition_and_masks(
    people: People, tmp_path: Path, capture: str, own_format: str
) -> None:
    """Rows enter and leave, in chunks of a load, in windows and by deletes."""
    if capture != "poll":
        change_schema(people.database, STREAM.format(capture))
    people.write(40)
    people.put(1, City="Bern", Age=18)
    people.put(2, City="Bern", Age=17)
    for _ in range(4):
        copy(people, tmp_path, capture, own_format, load_rows=7)
        check(people, tmp_path)
        people.write(15)
        for key, age in ((1, None), (2, 18)):
            people.put(key, City="Bern", Age=age)
    stored = json.loads(max((tmp_path / "_cuts").iterdir()).read_text())
    assert stored["format"] == FORMAT_OF_VIEWS


@pytest.mark.parametrize("capture", CAPTURES[:2])
@pytest.mark.parametrize("mode", [KEEP_DELETED, HISTORY])
def test_a_row_that_leaves_is_marked_and_shows_nothing_of_what_it_became(
    people: People, tmp_path: Path, mode: Mode, capture: str
) -> None:
    if capture != "poll":
        change_schema(people.database, STREAM.format("OLD_AND_NEW_VALUES"))
    people.put(1, City="Bern", Age=40, Email="in", Photo=None)
    people.put(2, City="Basel", Age=40, Email="never")
    copy(people, tmp_path, capture, mode=mode)
    people.put(1, City="Basel", Age=40, Email="out")
    people.put(2, City="Basel", Age=41, Email="never")
    people.put(3, City="Bern", Age=17, Email="never")
    copy(people, tmp_path, capture, mode=mode)
    check(people, tmp_path)
    rows = as_of(str(tmp_path)).read("People", all_rows=True).to_pylist()
    shown = {(row["Id"], row["City"], row["Email"]) for row in rows}
    inside = (1, "Bern", sign(b"in").hex())
    assert shown == ({inside} if mode == KEEP_DELETED else {inside, (1, None, None)})
    if mode == KEEP_DELETED:
        assert [row["_deleted_at"] is not None for row in rows] == [True]
    else:
        assert [row["_operation"] for row in rows] == ["LOAD", "DELETE"]
    people.put(1, City="Bern", Age=50, Email="in", Photo=None)
    copy(people, tmp_path, capture, mode=mode)
    check(people, tmp_path)


def plan(people: People, folder: Path, **table: Any) -> str:
    more = options("poll", **table) | {"replica": {"to": f"delta:{folder}"}}
    (planned,) = make_replicator(people.database, folder, **more).plan()
    return f"{planned.action}: {planned.reason}"


@pytest.mark.parametrize(
    "change",
    [
        {"where": "City = 'Basel'"},
        {"where": None},
        {"masks": MASKS | {"Phone": "null", "City": "redact"}},
        {"masks": {}},
        {"mask_key": {"env": "OTHER_KEY"}},
    ],
)
def test_another_condition_mask_or_key_loads_the_table_again(
    people: People, tmp_path: Path, change: Mapping[str, Any]
) -> None:
    people.write(30)
    copy(people, tmp_path)
    assert plan(people, tmp_path).startswith("merge: ")
    assert plan(people, tmp_path, **change).startswith("load: where or the masks")
    more = options("poll", **change) | {"replica": {"to": f"delta:{tmp_path}"}}
    (report,) = replicate(people.database, tmp_path, **more)
    assert list(report.loaded) == ["People"]
    changed = compare(people, tmp_path)
    assert changed.equal, changed.to_json()
    (report,) = replicate(people.database, tmp_path, **more)
    assert not report.loaded
    assert plan(people, tmp_path, **change).startswith("merge: ")


def test_a_load_that_died_before_its_cut_is_not_taken_for_another_condition(
    people: People, tmp_path: Path
) -> None:
    """Its copy has other rows than the last cut says."""
    people.write(30)
    copy(people, tmp_path)
    words = ["-d", address_of(people.database), "--to", f"delta:{tmp_path}", "-t", "People"]
    words += ["--consumer", CONSUMER, "--once", "--where", "People=City = 'Basel'"]
    killed = subprocess.run(
        [*WARM_PYTHON, "-c", "from watcher.cli import main; main()", "replicate", *map(str, words)],
        capture_output=True,
        timeout=300,
        check=False,
        env=os.environ | {VARIABLE: "after-replica-tables"},
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    expire_lease(people.database, CONSUMER)
    (report,) = copy(people, tmp_path)
    assert list(report.loaded) == ["People"]
    check(people, tmp_path)


def test_a_copy_that_keeps_deleted_rows_refuses_another_condition(
    people: People, tmp_path: Path
) -> None:
    people.write(20)
    copy(people, tmp_path, mode=KEEP_DELETED)
    more = options("poll", where="City = 'Basel'")
    more["replica"] = {"to": f"delta:{tmp_path}", "mode": KEEP_DELETED}
    with pytest.raises(ReplicaError, match="its columns, where or its masks have changed"):
        replicate(people.database, tmp_path, **more)
    copy(people, tmp_path, mode=KEEP_DELETED)
    check(people, tmp_path)


def run(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_commands_take_them_and_verify_finds_and_repairs_what_differs(
    people: People, tmp_path: Path
) -> None:
    """The same values in place of those in the copy, by sums, by keys and after a repair."""
    people.write(40)
    people.put(1, City="Bern", Age=18, Email="mine")
    common = ("-d", address_of(people.database), "--to", f"delta:{tmp_path}")
    flags = [f"--mask=People.{name}={kind}" for name, kind in MASKS.items()]
    flags += [f"--where=People={WHERE}", "--columns=People=City,Email,Name,Phone,Photo"]
    flags += ["--mask-key=env:MASK_KEY", "-t", "People", "--consumer", CONSUMER, "--once"]
    done = run("replicate", *common, *flags)
    assert done.exit_code == 0, done.output
    check(people, tmp_path)
    checked = run("verify", *common, "--mask-key=env:MASK_KEY")
    assert checked.exit_code == 0, checked.output
    assert f"rows that satisfy: {WHERE}" in " ".join(checked.output.split())
    for words in ((), ("--mask-key=env:OTHER_KEY",)):
        unknown = run("verify", *common, *words)
        assert isinstance(unknown.exception, ConfigurationError), unknown.output
    assert run("verify", *common, "--ignore-column=Email", "--ignore-column=Photo").exit_code == 0
    incremental = ("verify", *common, "--incremental", "--mask-key=env:MASK_KEY")
    assert run(*incremental).exit_code == 0
    people.put(1, City="Bern", Age=18, Email="changed")
    people.put(30, City="Bern", Age=19, Email="new")
    assert run("replicate", *common, *flags).exit_code == 0
    assert run(*incremental).exit_code == 0
    open_table(tmp_path, "People").update({"Email": "'mine'"}, predicate="Id = 1")
    open_table(tmp_path, "People").delete("Id = 30")
    adopt_newest(tmp_path, "People")
    assert run(*incremental).exit_code == 10
    broken = run("verify", *common, "--json", "--mask-key=env:MASK_KEY")
    (table,) = json.loads(broken.output)["tables"]
    assert [(each["kind"], each["key"]["Id"]) for each in table["differences"]] == [
        ("changed", 1),
        ("missing", 30),
    ]
    assert (table["where"], table["masks"]) == (WHERE, MASKS)
    mended = run("verify", *common, "--repair", "--mask-key=env:MASK_KEY")
    assert mended.exit_code == 0, mended.output
    check(people, tmp_path)
    rows = read_delta(open_table(tmp_path, "People")).to_pylist()
    assert {row["Id"] for row in rows} == people.expect().keys()


def test_verify_by_data_boost_masks_what_is_sent(people: People, tmp_path: Path) -> None:
    people.write(40)
    copy(people, tmp_path)
    report = compare(people, tmp_path, data_boost=True)
    assert report.equal, report.to_json()
    assert report.tables[0].rows == len(people.expect())


def test_what_no_change_tells_of_is_refused(people: People, tmp_path: Path) -> None:
    more = options("poll", where="LastModified > '2026-01-01'")
    with pytest.raises(ConfigurationError, match="names LastModified, which clearing writes"):
        replicate(people.database, tmp_path, **more)
    change_schema(people.database, "CREATE CHANGE STREAM S FOR People (City, Email, Name)")
    spec = {"where": WHERE, "columns": ["City", "Email", "Name"], "masks": {}}
    more = options("NEW_ROW", **spec)
    with pytest.raises(NotWatchableError, match="does not watch column Age"):
        replicate(people.database, tmp_path, **more)
    assert not list(tmp_path.iterdir())
