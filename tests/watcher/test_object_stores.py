"""Replicas in each object store, and over a network that breaks requests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import PurePosixPath

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder
from fixtures.broken_network import BrokenNetwork, Fault
from fixtures.commands import run_command
from fixtures.copy_histories import live_through
from fixtures.named_rows import KEY, content, load_rows, make_rows
from fixtures.object_stores import ACCOUNT, OpenStore, StoreServers, open_store
from fixtures.replicas import (
    CONSUMER,
    assert_exact_over,
    last_cut,
    replicate,
)
from fixtures.singers import address_of, write_singers
from google.cloud.spanner_v1.database import Database
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow.fs import FileSelector, FileType

from watcher.model.errors import ConfigurationError, CopyConflictError, ReplicaError
from watcher.replica.copies import MERGE_ON_READ
from watcher.replica.cuts.cut import DELTA
from watcher.replica.cuts.manifest import Manifest
from watcher.replica.cuts.owner import Owner
from watcher.replica.delta.copy import DeltaCopy
from watcher.replica.formats import PARQUET
from watcher.replica.parquet import ParquetVersion, VersionStore
from watcher.replica.reading import as_of
from watcher.replica.stores import object_stores
from watcher.replica.stores.stored_files import (
    create_new,
    list_names,
    open_file_system,
    read_whole,
    replace_known,
    write_whole,
)
from watcher.replica.writing.compaction import CompactionPolicy
from watcher.settings.destination_grammar import parse_copies_destination

WRITERS = 8
ROWS = 1_000
COUNT = count()


def all_at_once(act: Callable[[int], bool]) -> list[bool]:
    """What each of several threads returns, which begin at once."""
    start, done = threading.Barrier(WRITERS), list[bool]()

    def run(number: int) -> None:
        start.wait()
        done.append(act(number))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done


# Files.


def test_files_are_written_found_and_removed(bucket: str) -> None:
    files, base = open_file_system(f"{bucket}/a b/lake")
    folder = PurePosixPath(base) / "_cuts"
    for name in ("2.json", "1.json", "x.txt"):
        write_whole(files, folder, name, name.encode())
    assert list_names(files, folder, ".json") == ["1.json", "2.json"]
    assert read_whole(files, str(folder / "2.json")) == "2.json"
    with pytest.raises(FileNotFoundError):
        read_whole(files, str(folder / "3.json"))
    files.delete_file(str(folder / "1.json"))
    files.delete_dir_contents(str(PurePosixPath(base)), missing_dir_ok=True)
    assert list_names(files, folder, "") == []
    files.delete_dir_contents(str(PurePosixPath(base)), missing_dir_ok=True)


def test_of_writers_that_create_one_object_one_does(bucket: str) -> None:
    done = all_at_once(lambda number: create_new(bucket, "log/1.json", b"%d" % number))
    assert sorted(done) == [False] * (WRITERS - 1) + [True]


def test_of_writers_that_replace_one_object_one_does(bucket: str) -> None:
    assert create_new(bucket, "o", b"before")
    done = all_at_once(lambda number: replace_known(bucket, "o", b"before", b"%d" % number))
    assert sorted(done) == [False] * (WRITERS - 1) + [True]


def test_a_bucket_that_is_not_there_is_no_empty_one(store: OpenStore) -> None:
    manifest = Manifest(f"{store.address}-not-there/lake")
    with pytest.raises(ReplicaError, match=store.store.no_bucket):
        manifest.read_last()
    with pytest.raises(ReplicaError, match=store.store.no_bucket):
        manifest.claim(Owner("d", "c", DELTA))


@pytest.mark.parametrize("value", ["", "false"])
@pytest.mark.parametrize(("endpoint", "allow"), object_stores.ENDPOINTS.items())
def test_an_endpoint_without_tls_has_to_be_allowed(
    monkeypatch: pytest.MonkeyPatch, endpoint: str, allow: str, value: str
) -> None:
    monkeypatch.setenv(endpoint, "http://127.0.0.1:1")
    monkeypatch.setenv(allow, value)
    with pytest.raises(ConfigurationError, match=f"set {allow}=true"):
        open_file_system("s3://bucket")


def test_a_container_is_named_with_its_account_as_spark_does(
    store_servers: StoreServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same container by both names; the account is that of the address."""
    plain = open_store("azure", store_servers, monkeypatch).address
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME")
    host = f"{ACCOUNT}.dfs.core.windows.net"
    place = f"abfss://{plain.removeprefix('az://')}@{host}/lake/T"
    copy = DeltaCopy(place, "c", MERGE_ON_READ)
    expected = load_rows(copy, 10) | {3: "new", 20: "more"}
    copy.merge(make_rows({3: "new", 20: "more"}, 1), KEY, 101)
    assert content(place) == expected
    assert (
        QueryBuilder()
        .register("t", DeltaTable(place))
        .execute("SELECT * FROM t")
        .read_all()
        .num_rows
        == 11
    )
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
    assert content(f"{plain}/lake/T") == expected
    assert parse_copies_destination(f"delta:{place}").folder == place
    with pytest.raises(ConfigurationError, match="must not have a user or a password"):
        open_file_system(f"abfss://user:word@{host}/lake")


# Copies.


@pytest.mark.essential
@settings(
    max_examples=3,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_random_histories_are_read_by_everyone(
    bucket: str, small_groups: None, data: st.DataObject
) -> None:
    """delta-rs, polars with options of its own, and the product."""
    live_through(data, f"{bucket}/{next(COUNT)}/t", ("nothing",)).check()


def test_large_files_are_uploaded_in_parts(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By delta-rs, and by a rewrite."""
    monkeypatch.setattr(object_stores, "HELD_BYTES", 1_000)
    place = f"{bucket}/lake/T"
    copy = DeltaCopy(place, "c", MERGE_ON_READ, CompactionPolicy(0, 1, 1e3, deleted_rows=1))
    load_rows(copy, 900_000)
    copy.merge(make_rows({1: None, 900_001: "more"}, 1), KEY, 101)
    copy.compact(KEY, whole=True)
    sizes = pa.table(DeltaTable(place).get_add_actions())["size_bytes"].to_pylist()
    assert max(sizes) > 5 << 20, "which is one part"
    assert sum(batch.num_rows for batch in copy.scan(DeltaTable(place).version())) == 900_000


def test_of_two_replicators_one_is_refused(bucket: str) -> None:
    place = f"{bucket}/T"
    first, second = DeltaCopy(place, "c", MERGE_ON_READ), DeltaCopy(place, "c", MERGE_ON_READ)
    load_rows(first, ROWS)
    second.read_state()
    first.merge(make_rows({1: "first"}, 1), KEY, 101)
    with pytest.raises(CopyConflictError, match="one instance of consumer 'c'"):
        second.merge(make_rows({1: "second", 2: None}, 1), KEY, 101 + 1)
    assert content(place) == {n: f"n{n}" for n in range(ROWS)} | {1: "first"}


def test_of_replicators_that_merge_at_once_one_does(bucket: str) -> None:
    place = f"{bucket}/T"
    load_rows(DeltaCopy(place, "c", MERGE_ON_READ), ROWS)
    copies = [DeltaCopy(place, "c", MERGE_ON_READ) for _ in range(WRITERS)]
    for copy in copies:
        copy.read_state()

    def merge(number: int) -> bool:
        try:
            copies[number].merge(make_rows({ROWS + number: "new"}, 1), KEY, 101 + number)
        except CopyConflictError:
            return False
        return True

    done = all_at_once(merge)
    assert done.count(True) == 1
    assert len(content(place)) == ROWS + 1


def test_of_owners_that_take_a_folder_over_at_once_one_has_it(bucket: str) -> None:
    Manifest(bucket).claim(Owner("d", "c", DELTA))
    owners = [Owner("d", f"c{number}", DELTA) for number in range(WRITERS)]

    def take(number: int) -> bool:
        manifest = Manifest(bucket)
        try:
            manifest.claim(owners[number], take_over=True)
        except ConfigurationError:
            return False
        return manifest.owner.read() == owners[number]

    done = all_at_once(take)
    assert any(done)
    assert Manifest(bucket).owner.read() in owners


# Faults.


@pytest.mark.parametrize("path", ["", "/none"])
def test_a_listing_that_ends_in_the_middle_is_read_again(
    broken_network: BrokenNetwork, bucket: str, path: str
) -> None:
    files, base = open_file_system(f"{bucket}/lake")
    with files.open_output_stream(f"{base}/a/b") as stream:
        stream.write(b"c")
    broken_network.strike("GET", Fault.TORN, Fault.TORN)
    kinds = [each.type for each in files.get_file_info([f"{base}{path}"])]
    assert kinds == [FileType.NotFound if path else FileType.Directory]
    broken_network.strike("GET", Fault.TORN)
    selector = FileSelector(base, recursive=True)
    assert [each.base_name for each in files.get_file_info(selector)] == ["b"]
    assert broken_network.struck[Fault.TORN] == 3


@pytest.mark.parametrize("fault", list(Fault))
def test_a_merge_is_done_once_whatever_happens_to_its_requests(
    broken_network: BrokenNetwork, store: OpenStore, fault: Fault
) -> None:
    """Bursts, for each of its writes and reads."""
    place = f"{store.address}/T"
    copy = DeltaCopy(place, "c", MERGE_ON_READ)
    load_rows(copy, ROWS)
    for number, burst in enumerate(((1, 0), (0, 1), (3, 3)), 1):
        broken_network.strike("PUT", *[fault] * burst[0])
        broken_network.strike("GET", *[fault] * burst[1])
        rows = make_rows({number: f"new{number}", ROWS - number: None}, number)
        state = copy.merge(rows, KEY, 100 + number)
        assert state.end == 100 + number
    assert broken_network.struck[fault] == 8
    # delta-rs holds Python's lock while it reads a history: a network in this process would stand.
    store.lead_to(store.server)
    expected = {n: f"n{n}" for n in range(ROWS - 3)} | {n: f"new{n}" for n in (1, 2, 3)}
    assert content(place) == expected
    operations = [each["operation"] for each in DeltaTable(place).history()]
    assert operations.count("MERGE") == 3


@pytest.mark.parametrize("seed", range(3))
def test_a_replica_is_exact_whatever_happens_to_its_requests(
    singers: Database, broken_network: BrokenNetwork, bucket: str, seed: int
) -> None:
    """Loads by delta-rs in chunks, merges, compactions, cuts, reads."""
    lake = f"{bucket}/lake"
    assert_exact_over(broken_network, seed, singers, lake, f"delta:{lake}")


# Commands.


def test_commands_take_an_address(singers: Database, bucket: str) -> None:
    target = f"delta:{bucket}/lake"
    write_singers(singers, range(30), "name")
    source = ("-d", str(address_of(singers)), "-t", "Singers", "--consumer", CONSUMER)
    once = run_command("replicate", *source, "--to", target, "--once")
    assert once.returncode == 0, once.stderr
    equal = run_command("verify", "--to", target)
    assert equal.returncode == 0, equal.stderr
    assert "equal" in equal.stdout
    assert as_of(target).read("Singers").num_rows == 30
    other = run_command("replicate", *source[:-1], "other", "--to", target, "--once")
    assert other.returncode == 2, other.stderr
    assert "belongs to" in other.stderr


def test_a_copy_in_parquet_is_read_where_spark_has_put_it(singers: Database, bucket: str) -> None:
    write_singers(singers, range(30), "name")
    replicate(singers, f"{bucket}/delta")
    cut, rows = last_cut(f"{bucket}/delta"), as_of(f"delta:{bucket}/delta").read("Singers")
    store, folder = VersionStore(f"{bucket}/lake/Singers"), "_files/1-x"
    files, base = open_file_system(store.path)
    pq.write_table(rows, f"{base}/{folder}/0.parquet", filesystem=files)
    written = store.describe_files(folder)
    assert [(each.path, each.rows) for each in written] == [(f"{folder}/0.parquet", 30)]
    for end in (cut.end - 1, cut.end):
        store.write(ParquetVersion(CONSUMER, end, "load", rows.schema, written))
    table = replace(cut.tables["Singers"], version=cut.end)
    Manifest(f"{bucket}/lake").write(replace(cut, tables={"Singers": table}, copies=PARQUET))
    equal = run_command("verify", "--to", f"parquet:{bucket}/lake")
    assert equal.returncode == 0, equal.stderr
    assert as_of(f"parquet:{bucket}/lake").read("Singers").equals(rows)
    store.remove_before(cut.end)
    assert store.list_ends() == [cut.end]
    files.delete_file(f"{base}/{folder}/0.parquet")
    assert store.find_changed(store.read(cut.end)) == [f"{folder}/0.parquet"]
