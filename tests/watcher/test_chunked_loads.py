"""Loads in chunks: windows, kills and chunks of any size, and the first exact cut equals Spanner.

The truth is what the tests have written, by commit timestamp; ``verify`` and delta-rs judge, too.
"""

from __future__ import annotations

import random
import shutil
import time
from base64 import b64encode
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from fixtures.any_copy import AnyTable, any_tables, convert
from fixtures.changing_schemas import change_schema, watchable_ddl
from fixtures.changing_schemas import write as write_table
from fixtures.consumers import expire_lease
from fixtures.dialects import create_in
from fixtures.replicas import (
    CONSUMER,
    MERGE,
    assert_equal,
    last_cut,
    list_commits,
    make_replicator,
    open_table,
    read_delta,
    read_rows,
    replicate,
)
from fixtures.sent_requests import SentRequests
from fixtures.server import NUMBERS, CreateDatabase
from fixtures.singers import (
    await_expiry,
    capture_of,
    fetch_now,
    make_watchable,
    write_singers,
)
from google.cloud.spanner_v1 import KeySet, param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.instance import Instance
from google.cloud.spanner_v1.transaction import Transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spanner_schema.model.schema import Dialect
from watcher.captures import parallel_reads
from watcher.model.errors import ConfigurationError, CopyConflictError, VersionExpiredError
from watcher.replica import commits, loads
from watcher.replica.copies import DELETED_COLUMN
from watcher.replica.cuts.cut import DELTA, Cut
from watcher.replica.cuts.manifest import Manifest, name_of
from watcher.replica.delta import merge_on_read
from watcher.replica.delta.copy import DeltaCopy, open_delta_copies
from watcher.replica.loads import ChunkLimit, LoadBudget, LoadProgress
from watcher.replica.reading import as_of
from watcher.replica.replica_window import CutReport
from watcher.replica.sink import ReplicaSink
from watcher.replica.table_chunks import TableChunk
from watcher.replica.target import ReplicaTarget
from watcher.settings.watcher import parse_watch_config
from watcher.spanner.timestamps import to_micros

STREAM = "CREATE CHANGE STREAM S FOR ALL OPTIONS (value_capture_type = 'NEW_ROW')"
PAIRS = "CREATE TABLE Pairs (A STRING(MAX), B INT64, V INT64) PRIMARY KEY (A, B DESC)"
LETTERS: Sequence[str | None] = (None, "", "A", "a", "ä", "€", "\U0001d11e")
Pair = tuple[str | None, int | None]


class KilledError(BaseException):
    """Stands for SIGKILL: nothing on the way handles it."""


@dataclass
class Pairs:
    """The table, and what it was after each commit."""

    database: Database
    states: list[tuple[int, dict[Pair, int]]] = field(default_factory=lambda: [(0, {})])

    def write(self, chosen: random.Random, deletes: bool) -> None:
        """A transaction: rows that come, change, go, or have another key from now on."""
        state = dict(self.states[-1][1])
        with self.database.batch() as batch:
            for key in {draw_pair(chosen) for _ in range(chosen.randint(1, 4))}:
                put, value = key, chosen.randrange(1_000_000)
                if deletes and key in state and chosen.random() < 0.5:
                    batch.delete("Pairs", KeySet(keys=[key]))
                    value, put = state.pop(key), draw_pair(chosen)
                    if put in state or chosen.random() < 0.5:
                        continue
                batch.insert_or_update("Pairs", ("A", "B", "V"), [(*put, value)])
                state[put] = value
        self.states.append((to_micros(batch.committed), state))

    def at(self, micros: int) -> dict[Pair, int]:
        """The rows at a timestamp."""
        place = bisect_right(self.states, micros, key=itemgetter(0))
        return self.states[place - 1][1]


def draw_pair(chosen: random.Random) -> Pair:
    return chosen.choice(LETTERS), chosen.choice([None, *range(-3, 4)])


def order_of(pair: Pair) -> tuple[bool, bytes, bool, int]:
    """Spanner's order of the key (A, B DESC): NULL is least, and last where a column descends."""
    letter, number = pair
    text = (letter or "").encode()
    return letter is not None, text, number is None, -(number or 0)


def pairs_in(rows: Sequence[Any]) -> dict[Pair, int]:
    pairs = {(row["A"], row["B"]): row["V"] for row in rows}
    assert len(pairs) == len(rows), "a key is there twice"
    return pairs


def read_version(folder: Path, cut: Cut, table: str = "Pairs") -> list[Any]:
    """The rows of a cut, exact or not, as delta-rs reads them."""
    version = cut.tables[table].version
    rows: list[Any] = read_delta(DeltaTable(str(folder / table), version=version)).to_pylist()
    return rows


def in_chunks(folder: Path, rows: int, **more: object) -> dict[str, object]:
    return {"replica": {"to": f"delta:{folder}", "load_rows": rows} | MERGE | more}


def make_pairs(create_database: CreateDatabase, stream: bool) -> tuple[Database, dict[str, object]]:
    """The table, and the settings that capture its changes."""
    database = create_database(PAIRS)
    if stream:
        change_schema(database, STREAM)
        return database, {"capture": "change-stream"}
    make_watchable(database, "Pairs")
    return database, {}


@pytest.mark.parametrize("stream", [True, False])
def test_every_cut_of_a_load_is_a_part_of_the_table(
    create_database: CreateDatabase, tmp_path: Path, stream: bool
) -> None:
    """Rows up to the last key that was read are those of Spanner at the cut, and no others are
    there; between two chunks rows come, change, go and move."""
    database, capture = make_pairs(create_database, stream)
    seed = random.randrange(2**32)
    print("seed", seed)
    chosen = random.Random(seed)
    pairs = Pairs(database)
    for _ in range(12):
        pairs.write(chosen, deletes=stream)
    parts = 0

    def judge(report: CutReport) -> None:
        nonlocal parts
        load = report.loading.get("Pairs")
        expected = pairs.at(report.cut.end)
        if load is not None:
            parts += 1
            letter, number = load.progress.upto
            upto = order_of((letter, None if number is None else int(number)))
            expected = {key: v for key, v in expected.items() if order_of(key) <= upto}
        assert report.cut.exact == (load is None)
        assert pairs_in(read_version(tmp_path, report.cut)) == expected
        pairs.write(chosen, deletes=stream)

    make_replicator(database, tmp_path, judge, **capture, **in_chunks(tmp_path, 3)).run_once()
    assert parts >= 2
    cut = last_cut(tmp_path)
    assert pairs_in(read_rows(tmp_path, "Pairs")) == pairs.at(cut.end)
    assert_equal(database, tmp_path, cut)


@dataclass
class Killer:
    """Kills at a failpoint, now and then."""

    chosen: random.Random
    share: float
    kills: int = 0

    def strike(self, place: str) -> None:
        """In the place of ``failpoint``."""
        assert place
        if self.chosen.random() < self.share:
            self.kills += 1
            raise KilledError

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for module in (commits, loads, merge_on_read):
            monkeypatch.setattr(module, "failpoint", self.strike)


@pytest.mark.essential
@pytest.mark.essential
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 2**32),
    rows=st.integers(1, 9),
    stream=st.booleans(),
    max_rows=st.sampled_from([2, 1_000]),
    merge=st.sampled_from(["merge-on-read", "copy-on-write"]),
    parallelism=st.sampled_from([1, 1, 3]),
    boost=st.booleans(),
)
def test_the_first_exact_cut_of_random_histories_with_kills_equals_spanner(
    create_database: CreateDatabase,
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    rows: int,
    stream: bool,
    max_rows: int,
    merge: str,
    parallelism: int,
    boost: bool,
) -> None:
    folder = tmp_path_factory.mktemp("lake")
    database, capture = make_pairs(create_database, stream)
    chosen = random.Random(seed)
    pairs = Pairs(database)
    for _ in range(chosen.randint(0, 15)):
        pairs.write(chosen, deletes=stream)
    killer = Killer(chosen, share=0.15)
    reads = {"load_parallelism": parallelism, "data_boost": boost}
    chunks = in_chunks(folder, rows, merge=merge, **reads)
    more = capture | chunks | {"max_rows": max_rows}
    reports: list[CutReport] = []

    def write(report: CutReport) -> None:
        reports.append(report)
        pairs.write(chosen, deletes=stream)

    with pytest.MonkeyPatch.context() as patch:
        killer.install(patch)
        patch.setattr(parallel_reads, "RANGE_ROWS", 2)
        for _ in range(40):
            try:
                make_replicator(database, folder, write, **more).run_once()
                break
            except KilledError:
                expire_lease(database, CONSUMER)
                pairs.write(chosen, deletes=stream)
    replicate(database, folder, **more)
    manifest = Manifest(str(folder))
    exact = list(manifest.iterate_exact())
    assert exact
    for cut in exact:
        assert pairs_in(read_version(folder, cut)) == pairs.at(cut.end), cut.end
    assert pairs_in(pl.scan_delta(str(folder / "Pairs")).collect().to_dicts()) == pairs.at(
        exact[0].end
    )
    assert_equal(database, folder, exact[0])


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    table=any_tables(key_columns_max=4),
    rows=st.integers(1, 5),
    parallelism=st.sampled_from([1, 3]),
    boost=st.booleans(),
    data=st.data(),
)
def test_keys_of_any_type_are_loaded_in_chunks(
    instance: Instance,
    tmp_path_factory: pytest.TempPathFactory,
    table: AnyTable,
    rows: int,
    parallelism: int,
    boost: bool,
    data: st.DataObject,
) -> None:
    """In both dialects, with NULL, NaN, and columns that descend. Between two chunks a row goes,
    and between two others it is there again."""
    folder = tmp_path_factory.mktemp("lake")
    database = create_in(table.dialect, instance, f"loaded-{next(NUMBERS)}", [table.statement])
    change_schema(database, STREAM)
    table.write(database)
    chosen = [data.draw(st.sampled_from(table.rows))] if table.rows else []
    again = replace(table, rows=tuple(chosen))
    there = True

    def change(_: CutReport) -> None:
        nonlocal there
        if not again.rows:
            return
        if there:
            keys = [[convert(row[each.name], each) for each in table.key] for row in again.rows]
            with database.batch() as batch:
                batch.delete(table.name, KeySet(keys=keys))
        else:
            again.write(database)
        there = not there

    reads = {"load_parallelism": parallelism, "data_boost": boost}
    more = {"capture": "change-stream"} | in_chunks(folder, rows, **reads)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(parallel_reads, "RANGE_ROWS", 2)
            make_replicator(database, folder, change, **more).run_once()
        if not there:
            again.write(database)
        replicate(database, folder, **more)
        assert_equal(database, folder)
        names = [each.name for each in table.columns]
        read = as_of(str(folder)).read(table.name, names)
        assert read.num_rows == len(table.rows)
    finally:
        database.drop()


SHAPES: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "named schema": (
        "sales.T",
        ("A", "B"),
        ("CREATE SCHEMA sales", "CREATE TABLE sales.T (A INT64, B STRING(9), V INT64) {key}"),
    ),
    "interleaved": (
        "T",
        ("A", "B"),
        (
            "CREATE TABLE P (A INT64) PRIMARY KEY (A)",
            "CREATE TABLE T (A INT64, B STRING(9), V INT64) {key},"
            " INTERLEAVE IN PARENT P ON DELETE CASCADE",
        ),
    ),
    "rowid": (
        "T",
        ("A", "V"),
        ("CREATE TABLE T (A INT64, V INT64)",),
    ),
}
"""Tables, what rows are known by here, and their DDL."""


@pytest.mark.parametrize(
    ("shape", "dialect"),
    [(shape, dialect) for dialect in Dialect for shape in SHAPES],
)
def test_tables_of_any_shape_are_loaded_in_chunks(
    instance: Instance, tmp_path: Path, shape: str, dialect: Dialect
) -> None:
    """Between chunks rows come, change, and go, also with their parent; a key has NULL where the
    dialect lets it."""
    name, known_by, ddl = SHAPES[shape]
    statements = [each.format(key="PRIMARY KEY (A, B)") for each in ddl]
    database = create_in(dialect, instance, f"shapes-{next(NUMBERS)}", statements)
    change_schema(database, STREAM)
    seed = random.randrange(2**32)
    print("seed", seed)
    chosen = random.Random(seed)
    null = dialect is Dialect.GOOGLESQL
    rows: dict[tuple[Any, ...], int] = {}

    def write(_: CutReport | None = None) -> None:
        first = chosen.choice([None, 1, 2, 3] if null else [1, 2, 3])
        with database.batch() as batch:
            if shape == "rowid":
                value = chosen.randrange(2**40)
                batch.insert(name, ("A", "V"), [(first, value)])
                rows[first, value] = value
                return
            if shape == "interleaved":
                if chosen.random() < 0.3:
                    batch.delete("P", KeySet(keys=[[first]]))
                    for key in [key for key in rows if key[0] == first]:
                        del rows[key]
                    return
                batch.insert_or_update("P", ("A",), [(first,)])
            for second in chosen.sample([*(None,) * null, "", "a", "b", "ä"], 3):
                rows[first, second] = value = chosen.randrange(100)
                batch.insert_or_update(name, ("A", "B", "V"), [(first, second, value)])

    more = {"capture": "change-stream", "tables": [name]} | in_chunks(tmp_path, 2)
    try:
        for _ in range(8):
            write()
        parts: list[CutReport] = []

        def change(report: CutReport) -> None:
            parts.append(report)
            write()

        make_replicator(database, tmp_path, change, **more).run_once()
        replicate(database, tmp_path, **more)
        assert len(rows) < 4 or len(parts) > 1
        read = read_rows(tmp_path, name)
        assert len(read) == len(rows)
        assert {tuple(row[each] for each in known_by): row["V"] for row in read} == rows
        assert_equal(database, tmp_path)
    finally:
        database.drop()


# Kills, twins, lost progress.


def load_a_part(database: Database, folder: Path, chunks: int, **more: object) -> None:
    """A replicator that is killed after so many chunks."""
    cuts: list[CutReport] = []

    def kill(report: CutReport) -> None:
        cuts.append(report)
        if len(cuts) == chunks:
            raise KilledError

    with pytest.raises(KilledError):
        make_replicator(database, folder, kill, **more).run_once()
    expire_lease(database, CONSUMER)


def load_and_stop(database: Database, folder: Path, chunks: int, **more: object) -> None:
    """A replicator that is stopped after so many chunks."""
    cuts: list[CutReport] = []

    def stop(report: CutReport) -> None:
        cuts.append(report)
        if len(cuts) == chunks:
            replicator.stop()

    replicator = make_replicator(database, folder, stop, **more)
    replicator.run_once()
    assert len(cuts) == chunks


def modes_of(folder: Path, table: str) -> list[str]:
    """What loads have done to a copy, the latest first: Overwrite or Append."""
    commits_ = list_commits(folder, table)
    return [
        each["operationParameters"]["mode"] for each in commits_ if each["operation"] == "WRITE"
    ]


def test_a_load_goes_on_where_it_was_killed(singers: Database, tmp_path: Path) -> None:
    write_singers(singers, range(10), "name")
    load_a_part(singers, tmp_path, 2, **in_chunks(tmp_path, 3))
    write_singers(singers, [0, 9, 20], "other")
    reports = replicate(singers, tmp_path, **in_chunks(tmp_path, 4))
    assert [report.loaded for report in reports] == [{"Singers": 4}, {"Singers": 1}]
    assert [report.merged for report in reports] == [{"Singers": 1}, {}]
    assert modes_of(tmp_path, "Singers") == ["Append", "Append", "Append", "Overwrite"]
    assert [report.cut.exact for report in reports] == [False, True]
    assert len(read_rows(tmp_path, "Singers")) == 11
    assert_equal(singers, tmp_path)


def test_a_load_without_its_progress_begins_again(singers: Database, tmp_path: Path) -> None:
    write_singers(singers, range(10), "name")
    load_a_part(singers, tmp_path, 2, **in_chunks(tmp_path, 3))
    shutil.rmtree(tmp_path / "Singers" / loads.FOLDER)
    replicate(singers, tmp_path, **in_chunks(tmp_path, 9))
    assert modes_of(tmp_path, "Singers") == ["Append", "Overwrite", "Append", "Overwrite"]
    assert_equal(singers, tmp_path)


def test_a_load_whose_commits_were_cleaned_up_begins_again(
    singers: Database, tmp_path: Path
) -> None:
    """Somebody else has removed the entries that say how far it is."""
    write_singers(singers, range(10), "name")
    load_a_part(singers, tmp_path, 2, **in_chunks(tmp_path, 3))
    table = open_table(tmp_path, "Singers")
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 1 days"})
    table.create_checkpoint()
    for entry in sorted((tmp_path / "Singers" / "_delta_log").glob("*.json"))[:-1]:
        entry.unlink()
    replicate(singers, tmp_path, **in_chunks(tmp_path, 9))
    assert modes_of(tmp_path, "Singers")[:2] == ["Append", "Overwrite"]
    assert_equal(singers, tmp_path)


@dataclass
class SomeRows:
    """A chunk that was read."""

    table: pa.Table
    upto: int | None
    first: bool = False
    key: Sequence[str] = ("Id",)

    @property
    def progress(self) -> LoadProgress | None:
        return None if self.upto is None else LoadProgress((str(self.upto),), 1, 1, 1, 1)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(self.table.to_batches())


SCHEMA = pa.schema([("Id", pa.int64()), ("_spanner_commit_timestamp", pa.timestamp("us", "UTC"))])


def some_rows(first: int, upto: int | None, *, begins: bool = False) -> SomeRows:
    ids = list(range(first, (upto or first) + 1))
    stamps = pa.nulls(len(ids), SCHEMA.field(1).type)
    return SomeRows(pa.Table.from_arrays([pa.array(ids), stamps], schema=SCHEMA), upto, begins)


@pytest.mark.parametrize("end", [100, 200])
@pytest.mark.parametrize("whole", [True, False])
def test_a_stale_writer_does_not_continue_a_load(tmp_path: Path, end: int, whole: bool) -> None:
    """Also where the chunk of its successor is of the same window end, or the last one."""
    stale = DeltaCopy(str(tmp_path), CONSUMER)
    stale.load_chunk(SCHEMA, some_rows(0, 4, begins=True), 100)
    successor = DeltaCopy(str(tmp_path), CONSUMER)
    state = successor.read_state()
    assert state is not None
    assert state.progress is not None
    assert state.progress.upto == ("4",)
    successor.load_chunk(SCHEMA, some_rows(5, None if whole else 9), end)
    with pytest.raises(CopyConflictError):
        stale.load_chunk(SCHEMA, some_rows(5, 7), 300)
    merged = some_rows(0, 1).table.append_column(DELETED_COLUMN, pa.array([True, True]))
    with pytest.raises(CopyConflictError):
        stale.merge(merged, ["Id"], 300)
    rows = read_delta(DeltaTable(str(tmp_path))).to_pydict()
    assert sorted(rows["Id"]) == list(range(6 if whole else 10))


def test_a_chunk_that_is_read_while_a_successor_commits_is_refused(tmp_path: Path) -> None:
    stale, successor = DeltaCopy(str(tmp_path), CONSUMER), DeltaCopy(str(tmp_path), CONSUMER)
    stale.load_chunk(SCHEMA, some_rows(0, 4, begins=True), 100)
    successor.read_state()
    rows = some_rows(5, 7)

    class Overtaken(SomeRows):
        def __iter__(self) -> Iterator[pa.RecordBatch]:
            yield from self.table.to_batches()
            with ThreadPoolExecutor() as pool:
                pool.submit(successor.load_chunk, SCHEMA, some_rows(5, 9), 100).result()

    with pytest.raises(CopyConflictError):
        stale.load_chunk(SCHEMA, Overtaken(rows.table, 7), 200)
    state = DeltaCopy(str(tmp_path), CONSUMER).read_state()
    assert state is not None
    assert state.progress is not None
    assert state.progress.upto == ("9",)
    assert sorted(read_delta(DeltaTable(str(tmp_path))).to_pydict()["Id"]) == list(range(10))


# Windows.


def make_sink(
    database: Database, folder: Path, reports: list[CutReport], limit: ChunkLimit
) -> ReplicaSink:
    copies = open_delta_copies(str(folder), CONSUMER)
    target = ReplicaTarget(copies, Manifest(str(folder)), 3600.0, DELTA)
    return ReplicaSink(database.name, CONSUMER, target, lambda: None, reports.append, limit)


def test_a_copy_that_is_ahead_gets_no_chunk(singers: Database, tmp_path: Path) -> None:
    """After a crash a window may come again with an earlier end."""
    write_singers(singers, range(6), "name")
    capture = capture_of(singers)
    reports: list[CutReport] = []
    sink = make_sink(singers, tmp_path, reports, ChunkLimit(rows=2))
    ends = [fetch_now(singers) for _ in range(3)]
    for end in (ends[0], ends[2]):
        sink.begin_window(end, {"Singers": ends[0] - 1}, {"Singers": capture})
        sink.flush()
    assert [report.loaded for report in reports] == [{"Singers": 2}] * 2
    (tmp_path / "_cuts" / name_of(ends[2])).unlink()
    again = make_sink(singers, tmp_path, reports, ChunkLimit(rows=2))
    for end, loaded in ((ends[1], {}), (fetch_now(singers), {"Singers": 2})):
        again.begin_window(end, {"Singers": ends[0]}, {"Singers": capture})
        again.flush()
        assert reports[-1].loaded == loaded
        assert not reports[-1].cut.exact
    assert again.unfinished
    again.begin_window(fetch_now(singers), {"Singers": ends[0]}, {"Singers": capture})
    again.flush()
    assert not again.unfinished
    assert reports[-1].cut.exact
    assert_equal(singers, tmp_path)


def test_tables_wait_for_their_first_chunk(create_database: CreateDatabase, tmp_path: Path) -> None:
    """A window has no time for all tables: those that it does not begin are in no cut."""
    names = ("A", "B", "C")
    database = create_database(*(ddl for name in names for ddl in watchable_ddl(name)))
    for name in names:
        write_table(database, 1, 2, table=name, Version=1)
    more = {"tables": names, **in_chunks(tmp_path, 9, load_seconds="0s")}
    reports: list[CutReport] = []

    def write(report: CutReport) -> None:
        reports.append(report)
        write_table(database, 2, 3, table="C", Version=len(reports))

    make_replicator(database, tmp_path, write, **more).run_once()
    first, last = reports[0], reports[-1]
    assert list(first.cut.tables) == ["A"]
    assert first.cut.explain() == "not loaded yet: B, C; A: " + str(
        first.cut.tables["A"].reasons[0].detail
    )
    assert {name: each is None for name, each in first.loading.items()} == {
        "A": False,
        "B": True,
        "C": True,
    }
    assert [report.cut.exact for report in reports] == [False] * (len(reports) - 1) + [True]
    assert list(last.cut.tables) == list(names)
    assert_equal(database, tmp_path)


def test_a_table_without_rows_or_keys_is_one_chunk(
    create_database: CreateDatabase, tmp_path: Path
) -> None:
    database = create_database(
        "CREATE TABLE Empty (Id INT64) PRIMARY KEY (Id)",
        "CREATE TABLE Single (V INT64) PRIMARY KEY ()",
        STREAM,
    )
    with database.batch() as batch:
        batch.insert("Single", ["V"], [[1]])
    more = {"capture": "change-stream", **in_chunks(tmp_path, 1)}
    reports = replicate(database, tmp_path, **more)
    assert reports[0].loaded == {"Empty": 0, "Single": 1}
    with database.batch() as batch:
        batch.update("Single", ["V"], [[2]])
        batch.insert("Empty", ["Id"], [[1]])
    replicate(database, tmp_path, **more)
    assert [row["V"] for row in read_rows(tmp_path, "Single")] == [2]
    assert_equal(database, tmp_path)


def test_columns_that_change_in_the_middle_of_a_load(
    create_database: CreateDatabase, tmp_path: Path
) -> None:
    """A column that is NULL everywhere is added to the part; for others the load begins again."""
    database = create_database(*watchable_ddl("A"))
    write_table(database, *range(10), table="A", Version=1)
    more = in_chunks(tmp_path, 3)
    load_and_stop(database, tmp_path, 2, **more)
    change_schema(database, "ALTER TABLE A ADD COLUMN Note STRING(MAX)")
    write_table(database, 1, 9, table="A", Note="note")
    load_and_stop(database, tmp_path, 1, **more)
    assert modes_of(tmp_path, "A") == ["Append", "Append", "Overwrite"]
    change_schema(database, "ALTER TABLE A ADD COLUMN IF NOT EXISTS Kind STRING(MAX) DEFAULT ('k')")
    replicate(database, tmp_path, **more)
    assert modes_of(tmp_path, "A").count("Overwrite") == 2
    assert_equal(database, tmp_path)


def test_a_reload_in_chunks_leaves_the_last_exact_cut_to_readers(
    singers: Database, tmp_path: Path
) -> None:
    write_singers(singers, range(6), "name")
    replicate(singers, tmp_path, **in_chunks(tmp_path, 9))
    before = last_cut(tmp_path)
    change_schema(
        singers, "ALTER TABLE Singers ADD COLUMN IF NOT EXISTS Kind STRING(MAX) DEFAULT ('k')"
    )
    load_a_part(singers, tmp_path, 1, **in_chunks(tmp_path, 4))
    assert last_cut(tmp_path) == before
    assert as_of(str(tmp_path)).read("Singers").num_rows == 6
    last = Manifest(str(tmp_path)).read_last()
    assert last is not None
    assert last.explain() == 'Singers: it is loaded up to the key ["3"]: 4 rows, about 60%'
    replicate(singers, tmp_path, **in_chunks(tmp_path, 4))
    assert {row["Kind"] for row in read_rows(tmp_path, "Singers")} == {"k"}
    assert_equal(singers, tmp_path)


# Versions that Spanner keeps no more.


def test_a_load_lasts_longer_than_versions_are_kept(
    singers: Database, tmp_path: Path, faults: Callable[..., None]
) -> None:
    """No version of the chunk before is kept when the next one is read."""
    write_singers(singers, range(9), "name")
    cuts = 0

    def expire(report: CutReport) -> None:
        nonlocal cuts
        cuts += 1
        write_singers(singers, [cuts, cuts + 5], f"after {cuts}")
        collect_versions(singers, report.cut.end)

    def collect_versions(database: Database, at: int) -> None:
        """Returns when a read at a timestamp is refused, and one as of now is not."""
        faults(versions_kept_seconds=0.001)
        await_expiry(database, "Singers", at)
        faults()

    reports = []

    def note(report: CutReport) -> None:
        reports.append(report)
        expire(report)

    make_replicator(singers, tmp_path, note, **in_chunks(tmp_path, 2)).run_once()
    assert len(reports) >= 5
    assert [report.cut.exact for report in reports] == [False] * (len(reports) - 1) + [True]
    assert_equal_now(singers, tmp_path)


def assert_equal_now(database: Database, folder: Path) -> None:
    """The last exact cut may be too old to compare: another window, and a comparison there."""
    replicate(database, folder)
    assert_equal(database, folder)


def test_a_chunk_ends_where_versions_expire(singers: Database, faults: Callable[..., None]) -> None:
    """In the middle of a chunk: what was read until then is loaded. Before it: nothing is."""
    fill_singers(singers, 10_000, picture=b"0" * 3_000)
    capture, at = capture_of(singers), fetch_now(singers)
    batches = 0

    def expire() -> None:
        nonlocal batches
        batches += 1
        if batches == 1:
            faults(versions_kept_seconds=0.000_001, unavailable_after_rows=9_000)

    # The stream breaks, and cannot be resumed.
    faults(unavailable_after_rows=9_000)
    chunk = TableChunk(capture, at, None, LoadBudget(ChunkLimit()), expire)
    rows = sum(batch.num_rows for batch in chunk)
    faults()
    assert 0 < rows < 10_000
    assert chunk.progress is not None
    assert chunk.progress.rows == rows
    assert chunk.progress.upto == (str(rows - 1),)
    later = TableChunk(capture, at, chunk.progress, LoadBudget(ChunkLimit()), lambda: None)
    with pytest.raises(VersionExpiredError):
        list(later)


@pytest.mark.essential
def test_a_chunk_of_parallel_reads_ends_where_versions_expire(
    singers: Database, faults: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the rows up to the first range that cannot be read, in the order of the key."""
    monkeypatch.setattr(parallel_reads, "RANGE_ROWS", 1_000)
    fill_singers(singers, 20_000, b"")
    capture = capture_of(singers)
    at = fetch_now(singers)
    limit = ChunkLimit(parallelism=3)

    def expire() -> None:
        faults(versions_kept_seconds=0.000_001)

    chunk = TableChunk(capture, at, None, LoadBudget(limit), expire)
    keys = pa.Table.from_batches(list(chunk)).column("SingerId").to_pylist()
    faults()
    assert 1_000 <= len(keys) < 20_000
    assert keys == list(range(len(keys)))
    assert chunk.progress is not None
    assert chunk.progress.upto == (str(len(keys) - 1),)
    assert chunk.progress.rows == len(keys)
    rest = TableChunk(capture, fetch_now(singers), chunk.progress, LoadBudget(limit), lambda: None)
    later = pa.Table.from_batches(list(rest)).column("SingerId").to_pylist()
    assert keys + later == list(range(20_000))
    assert rest.progress is None


def fill_singers(database: Database, rows: int, picture: bytes) -> None:
    array = "UNNEST(GENERATE_ARRAY(@first, @first + 9999))"
    sql = f"INSERT INTO Singers (SingerId, Picture) SELECT k, @picture FROM {array} AS k"
    types = {"first": param_types.INT64, "picture": param_types.BYTES}

    def fill(transaction: Transaction) -> None:
        for first in range(0, rows, 10_000):
            values = {"first": first, "picture": b64encode(picture)}
            transaction.execute_update(sql, values, types)

    database.run_in_transaction(fill)


def test_a_window_of_a_backlog_loads_for_a_shorter_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    limit = ChunkLimit(seconds=60.0)
    budgets = [LoadBudget(limit, lag) for lag in (0.0, 59.0, 61.0, 300.0)]
    for budget in budgets:
        budget.start()
    assert not any(budget.used_up for budget in budgets)
    now = 6.5
    assert [budget.used_up for budget in budgets] == [False, False, True, False]
    now = 30.5
    assert [budget.used_up for budget in budgets] == [False, False, True, True]
    now = 60.0
    assert all(budget.used_up for budget in budgets)


def test_short_chunks_of_a_backlog_are_a_tenth_of_what_it_is_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A tenth of the chunk would be nothing beside a window that takes a minute."""
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    budgets = [LoadBudget(ChunkLimit(seconds=5.0), lag) for lag in (20.0, 80.0)]
    for budget in budgets:
        budget.start()
    now = 1.9
    assert not any(budget.used_up for budget in budgets)
    now = 2.1
    assert [budget.used_up for budget in budgets] == [True, False]
    now = 5.1
    assert all(budget.used_up for budget in budgets)


def test_parallel_loads_are_for_the_engine_without_spark() -> None:
    replica = {"to": "delta:/lake/music", "engine": "spark", "load_parallelism": 5}
    with pytest.raises(ConfigurationError, match="executors read as many"):
        parse_watch_config(
            {"database": "spanner://projects/p1/instances/i1/databases/d1", "replica": replica}
        )


def test_loads_of_spark_have_data_boost_by_an_option_of_their_source() -> None:
    replica = {"to": "delta:/lake/music", "engine": "spark", "data_boost": True}
    with pytest.raises(ConfigurationError, match="'dataBoost': 'true'"):
        parse_watch_config(
            {"database": "spanner://projects/p1/instances/i1/databases/d1", "replica": replica}
        )


def test_a_load_by_data_boost_reads_partitions_of_ranges(
    singers: Database, tmp_path: Path, sent_requests: SentRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows by partitioned reads with Data Boost alone; keys, and a sample of rows, without it."""
    monkeypatch.setattr(parallel_reads, "RANGE_ROWS", 2)
    write_singers(singers, range(30), "name")
    replicate(singers, tmp_path, **in_chunks(tmp_path, 20, data_boost=True))
    assert_equal(singers, tmp_path)
    partitioned = [each for method, each in sent_requests if method == "PartitionRead"]
    assert len(partitioned) == 5  # ranges of 8 rows at most, in chunks of 20 and 10
    read = [each for method, each in sent_requests if method == "StreamingRead"]
    boosted = [each for each in read if each.data_boost_enabled]
    assert all(each.partition_token for each in boosted)
    assert {"FirstName"} <= set(boosted[0].columns)
    whole = [each for each in read if "FirstName" in each.columns and not each.limit]
    assert whole == boosted
