"""Replicas in a namespace of a catalog of Iceberg: exact, fenced, and tied to their folder."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures import replicas
from fixtures.broken_network import BrokenNetwork, Fault
from fixtures.commands import run_command
from fixtures.iceberg_catalogs import load_table, set_properties
from fixtures.iceberg_histories import read_opened
from fixtures.iceberg_rest import RestCatalogServer, run_rest_catalog
from fixtures.named_rows import KEY, load_rows, make_rows, read_content
from fixtures.replicas import (
    CONSUMER,
    assert_equal,
    assert_exact_over,
    last_cut,
    read_rows,
    replicate,
)
from fixtures.singers import address_of, write_singers
from google.cloud.spanner_v1.database import Database
from pyiceberg.catalog.sql import SqlCatalog

from watcher.model.errors import (
    ConfigurationError,
    CopyConflictError,
    ReplicaError,
    StoreUnavailableError,
)
from watcher.replica.formats import ICEBERG
from watcher.replica.iceberg import namespaces
from watcher.replica.iceberg.catalog import NamespaceTables, open_catalog
from watcher.replica.iceberg.copies import IcebergTableCopy, open_written_copies
from watcher.replica.iceberg.namespaces import FILE, TIE, NamespacePlace, find_folder, tie_folder
from watcher.replica.reading import as_of
from watcher.spanner.timestamps import format_timestamp

WRITERS = 6
ROWS = 200


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A namespace that is not there, of a catalog in SQLite."""
    monkeypatch.setattr(replicas, "FORMAT", ICEBERG)
    uri, warehouse = f"sqlite:///{tmp_path}/catalog.db", str(tmp_path / "lake")
    set_properties(monkeypatch, "own", uri=uri, warehouse=warehouse)
    return "own.music"


def open_copy(place: str) -> IcebergTableCopy:
    """A copy as a process that starts finds it."""
    copy = open_written_copies(place, "c")("T")
    assert isinstance(copy, IcebergTableCopy)
    copy.read_state()
    return copy


def open_loaded(place: str) -> IcebergTableCopy:
    copy = open_copy(place)
    load_rows(copy, ROWS)
    return copy


# The whole way.


def test_a_replica_in_a_catalog_is_exact_and_read_by_others(
    singers: Database, catalog_place: str
) -> None:
    write_singers(singers, range(30), "first")
    (before,) = replicate(singers, catalog_place)
    write_singers(singers, range(20, 40), "second")
    (after,) = replicate(singers, catalog_place)
    assert (before.loaded, after.merged) == ({"Singers": 30}, {"Singers": 20})
    assert after.cut.exact
    assert_equal(singers, catalog_place)
    assert_equal(singers, catalog_place, before.cut)
    names = {row["SingerId"]: row["LastName"] for row in read_rows(catalog_place, "Singers")}
    assert names == {n: "first" if n < 20 else "second" for n in range(40)}
    for rows in read_opened(load_table(catalog_place, "Singers")):
        assert {row["SingerId"]: row["LastName"] for row in rows.to_pylist()} == names
    at = format_timestamp(before.cut.end)
    assert as_of(f"iceberg:{catalog_place}", at).read("Singers").num_rows == 30


def test_commands_take_a_namespace_and_properties_of_its_catalog(
    singers: Database, tmp_path: Path
) -> None:
    target = f"iceberg:own.music?uri=sqlite:///{tmp_path}/c.db&location={tmp_path}/lake"
    write_singers(singers, range(30), "name")
    source = ("-d", str(address_of(singers)), "-t", "Singers", "--consumer", CONSUMER)
    once = run_command("replicate", *source, "--to", target, "--once")
    assert once.returncode == 0, once.stderr
    equal = run_command("verify", "--to", target)
    assert equal.returncode == 0, equal.stderr
    assert "equal" in equal.stdout
    other = run_command("replicate", *source[:-1], "other", "--to", target, "--once")
    assert other.returncode == 2, other.stderr
    assert "belongs to" in other.stderr


# Writers.


def test_of_replicators_that_merge_at_once_one_does(catalog_place: str) -> None:
    open_loaded(catalog_place)
    copies = [open_copy(catalog_place) for _ in range(WRITERS)]
    start, done = threading.Barrier(WRITERS), list[int]()

    def merge(number: int) -> None:
        start.wait()
        try:
            copies[number].merge(make_rows({ROWS + number: "new"}, 1), KEY, 101 + number)
        except CopyConflictError:
            return
        done.append(number)

    threads = [threading.Thread(target=merge, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = done
    assert set(read_content(open_copy(catalog_place))) == {*range(ROWS), ROWS + winner}


def test_a_commit_of_somebody_else_is_built_upon(catalog_place: str) -> None:
    copy = open_loaded(catalog_place)
    with load_table(catalog_place, "T").transaction() as change:
        change.set_properties({"owner": "somebody"})
    copy.merge(make_rows({1: "one", 2: None}, 1), KEY, 101)
    assert len(read_content(copy)) == ROWS - 1


# REST.


@pytest.fixture
def rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, BrokenNetwork, RestCatalogServer]]:
    """A place over REST, the network to it, and the server."""
    with run_rest_catalog(tmp_path / "server") as (address, server):
        network = BrokenNetwork(address)
        options = {"uri": network.address, "warehouse": str(tmp_path / "lake")}
        set_properties(monkeypatch, "rest", **options)
        yield "rest.music", network, server
        network.close()


@pytest.mark.parametrize("fault", list(Fault))
def test_a_commit_is_done_once_whatever_happens_to_its_request(
    rest: tuple[str, BrokenNetwork, RestCatalogServer], fault: Fault
) -> None:
    place, network, _ = rest
    copy = open_loaded(place)
    network.strike("POST", fault)
    rows = make_rows({1: "one", 2: None}, 1)
    try:
        state = copy.merge(rows, KEY, 101)
    except StoreUnavailableError:
        # It was not done: the window is tried again, as a replicator does.
        assert fault in (Fault.BUSY, Fault.BROKEN)
        state = copy.merge(rows, KEY, 101)
    assert state.end == 101
    assert network.struck[fault] == 1
    ends = [
        s.summary["spanner-watcher.end"] for s in load_table(place, "T").snapshots() if s.summary
    ]
    assert ends == ["100", "101"]
    expected = {n: f"n{n}" for n in range(ROWS)} | {1: "one"}
    del expected[2]
    assert read_content(open_copy(place)) == expected


# Object stores.


@pytest.mark.parametrize("seed", range(2))
def test_a_replica_is_exact_whatever_happens_to_the_requests_of_its_store(
    singers: Database,
    place: str,
    broken_network: BrokenNetwork,
    bucket: str,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
) -> None:
    """Loads in chunks, merges, compactions, cuts, reads."""
    set_properties(monkeypatch, "own", warehouse=f"{bucket}/lake")
    assert_exact_over(broken_network, seed, singers, place, f"iceberg:{place}")


# Cuts and readers.


def test_a_commit_that_the_catalog_does_not_show_has_no_cut(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A catalog that answers from a cache."""
    copy = open_loaded(place)
    stale = load_table(place, "T")
    monkeypatch.setattr(NamespaceTables, "load", lambda *_: stale)
    with pytest.raises(StoreUnavailableError, match="still shows what was there before"):
        copy.merge(make_rows({1: "one"}, 1), KEY, 101)


def test_a_catalog_that_does_not_answer_is_an_outage(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_properties(monkeypatch, "own", uri="http://127.0.0.1:9")
    with pytest.raises(StoreUnavailableError, match=r"catalog of own\.music does not answer"):
        find_folder(place)


# The tie of a namespace and its folder.


def test_the_folder_is_that_of_the_namespace_whatever_the_warehouse_is(
    singers: Database, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_singers(singers, range(3), "name")
    replicate(singers, place)
    assert find_folder(place) == str(tmp_path / "lake/music")
    set_properties(monkeypatch, "own", warehouse=str(tmp_path / "elsewhere"))
    assert find_folder(place) == str(tmp_path / "lake/music")
    assert last_cut(place).exact


@pytest.mark.parametrize("properties", [{}, {TIE: "somebody's"}])
def test_a_folder_of_another_namespace_is_refused(
    place: str, tmp_path: Path, properties: dict[str, str]
) -> None:
    """As of a namespace of another catalog, by which readers would find cuts of tables that it does
    not have."""
    tie_folder(place)
    tie_folder(place)
    catalog = NamespacePlace.parse(place).open()
    catalog.create_namespace("other", properties)
    for act in (tie_folder, find_folder):
        with pytest.raises(ReplicaError, match=r"own\.other belong to different replicas"):
            act(f"own.other?location={tmp_path}/lake/music")


def test_a_start_that_died_between_namespace_and_folder_goes_on(place: str, tmp_path: Path) -> None:
    tie_folder(place)
    tied = tmp_path / "lake/music" / FILE
    before = json.loads(tied.read_text())["id"]
    tied.unlink()
    assert find_folder(place) == str(tied.parent)
    tie_folder(place)
    assert json.loads(tied.read_text())["id"] == before


@pytest.mark.parametrize("other", ["music", "more"])
@pytest.mark.parametrize("step", range(3))
def test_of_starts_at_once_on_a_namespace_without_a_tie_none_is_in_the_way(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, other: str
) -> None:
    """Another one begins and ends before each step. Of two namespaces of one folder one wins."""
    location = f"?location={tmp_path}/lake/music"
    catalog = NamespacePlace.parse(place).open()
    for name in {"music", other}:
        catalog.create_namespace(name)
    refused, steps = 0, 0

    def tie(name: str) -> None:
        nonlocal refused
        try:
            tie_folder(f"own.{name}{location}")
        except ReplicaError:
            refused += 1

    def interrupt(act: Callable[..., Any]) -> Callable[..., Any]:
        def interrupted(*values: Any, **named: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps == step + 1:
                tie(other)
            return act(*values, **named)

        return interrupted

    for owner, name in ((SqlCatalog, "update_namespace_properties"), (namespaces, "create_new")):
        monkeypatch.setattr(owner, name, interrupt(getattr(owner, name)))
    tie("music")
    assert steps >= step + 1
    assert refused == (other != "music")
    tied = json.loads((tmp_path / "lake/music" / FILE).read_text())["id"]
    names = {"music", other}
    winner = [n for n in names if catalog.load_namespace_properties(n).get(TIE) == tied]
    assert len(winner) == 1
    for name in names:
        tie(name)
    assert refused == 2 * (other != "music")
    assert find_folder(f"own.{winner[0]}{location}") == str(tmp_path / "lake/music")


def test_a_folder_with_a_catalog_of_its_own_is_no_namespace(
    singers: Database, place: str, tmp_path: Path
) -> None:
    write_singers(singers, range(3), "name")
    (tmp_path / "lake").mkdir()
    replicate(singers, tmp_path / "lake/music")
    with pytest.raises(ReplicaError, match=r"_catalog\.db of its own"):
        tie_folder(place)


def test_the_folder_of_a_namespace_is_no_catalog_of_its_own(
    singers: Database, place: str, tmp_path: Path
) -> None:
    write_singers(singers, range(3), "name")
    replicate(singers, place)
    with pytest.raises(ReplicaError, match=r"is the folder of a namespace"):
        open_catalog(str(tmp_path / "lake/music")).load("Singers")


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("none.music", r"cannot open the catalog none: URI missing.*PYICEBERG_CATALOG__NONE__URI"),
        (
            "a.b?uri=sqlite:///x.db&token=abc",
            "must not have 'token': set PYICEBERG_CATALOG__A__TOK",
        ),
        (
            "a.b?uri=postgresql://me:secret@h/d",
            "must not have 'uri': set PYICEBERG_CATALOG__A__URI",
        ),
        ("a.b?uri=sqlite://", r"nothing says where a\.b is: give the namespace a location"),
    ],
)
def test_a_place_that_cannot_be_is_refused(place: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        find_folder(place)
    assert "secret" not in str(caught.value)


def test_the_file_of_the_tie_says_whose_it_is(place: str, tmp_path: Path) -> None:
    tie_folder(place)
    stored = json.loads((tmp_path / "lake/music" / FILE).read_text())
    properties = NamespacePlace.parse(place).open().load_namespace_properties("music")
    assert stored["of"] == place
    assert stored["id"] == properties[TIE]
