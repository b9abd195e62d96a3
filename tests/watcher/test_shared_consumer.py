"""One consumer shared by several instances: each row comes to one of them, in the order of its
versions, while instances join, leave and die. The judge is what was written, kept apart."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from fixtures import changing_schemas as rows
from fixtures.changing_schemas import reshard_ddl, watchable_ddl
from fixtures.consumers import clear, expire_lease, names_by_key, options, singers_of, write
from fixtures.consumers import consumers_of as leases_of
from fixtures.pace import allow
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, address_of, fetch_now, make_watchable
from fixtures.watcher_threads import ChangeCollector, run_in_thread, run_without_error
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from hypothesis import given
from hypothesis import strategies as st

from watcher import Change, Watcher
from watcher.consumers.members import count_share, list_differences, plan_shift
from watcher.consumers.merging import merge_parts
from watcher.consumers.positions import SpannerPositions
from watcher.consumers.positions.rows import (
    MovedConsumer,
    StoredConsumer,
    StoredPosition,
    merge_positions,
    merge_states,
)
from watcher.consumers.states import Command
from watcher.model.errors import (
    ConfigurationError,
    DivisionChangedError,
    LeaseHeldError,
    WatcherError,
)
from watcher.model.window import BEGINNING
from watcher.tables.parts import Part, list_parts
from watcher.tables.selection import Selection

PARTS = 4
SHARED = {"consumer": "orders", "parts": PARTS, "lease": "1s"}
KEYS = range(40)


def instance(database: Database, collect: Callable[[Change], object], **more: object) -> Watcher:
    watcher = Watcher(**options(database, **(SHARED | more)))
    watcher.on_change(collect)
    return watcher


def list_holders(database: Database) -> set[str]:
    leases = leases_of(database)
    leases.create()
    return {each.consumer for each in leases.list_all() if each.alive}


def wait_for(holds: Callable[[], bool]) -> None:
    """Until something holds that no change announces."""
    ended = threading.Event()
    for _ in range(round(allow(60) * 20)):
        if holds():
            return
        ended.wait(0.05)
    raise AssertionError("it did not come to hold")


class Written:
    """Versions of every key, numbered in the order in which they were committed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._number = 0

    def write(self, keys: Sequence[int] = KEYS) -> str:
        """The name that all keys have from now on."""
        self._number += 1
        name = f"{self._number:04}"
        write(self._database, *keys, name=name)
        return name


def newest(collectors: Sequence[ChangeCollector]) -> dict[object, object]:
    """The newest name of each key that any instance got."""
    names: dict[object, object] = {}
    for collector in collectors:
        for key, each in names_by_key(list(collector.changes)).items():
            names[key] = max([str(name) for name in each] + [str(names.get(key, ""))])
    return names


def wait_for_name(collectors: Sequence[ChangeCollector], name: str) -> None:
    """Until every key came with a name."""
    wait_for(lambda: newest(collectors) == dict.fromkeys(KEYS, name))


def check_orders(collector: ChangeCollector) -> None:
    """No instance got an older version of a row after a newer one."""
    for names in names_by_key(collector.changes).values():
        assert names == sorted(map(str, names))


def test_instances_divide_the_rows_among_themselves(singers: Database) -> None:
    written, first, second = Written(singers), ChangeCollector(), ChangeCollector()
    written.write()
    # A lease that runs out on a busy machine would bring rows again, to the other instance.
    with run_without_error(instance(singers, first, lease="5s")):
        first.wait(len(KEYS))
        with run_without_error(instance(singers, second, lease="5s")):
            while not second.changes:
                wait_for_name([first, second], written.write())
            first.changes.clear()
            second.changes.clear()
            wait_for_name([first, second], written.write())
            got = [{change.key["SingerId"] for change in each.changes} for each in (first, second)]
            assert all(got)
            assert not got[0] & got[1]
        wait_for_name([first], written.write())
    check_orders(first)
    check_orders(second)


JOB = """
import sys
from watcher import Watcher
watcher = Watcher(database=sys.argv[1], tables=["Singers"], start="earliest", interval="20ms",
                  consumer="orders", parts=4, lease="1s")
watcher.on_change(lambda change: print(change.key["SingerId"], flush=True))
watcher.run()
"""


def test_the_parts_of_an_instance_that_is_killed_go_on(singers: Database, tmp_path: Path) -> None:
    written, survivor = Written(singers), ChangeCollector()
    written.write()
    output = tmp_path / "killed.txt"
    with output.open("w") as lines, ExitStack() as stack:
        process = subprocess.Popen(
            [sys.executable, "-c", JOB, str(address_of(singers))], stdout=lines
        )
        stack.callback(process.wait)
        stack.callback(process.kill)
        wait_for(lambda: len(output.read_text().splitlines()) >= len(KEYS))
        with run_without_error(instance(singers, survivor)):
            while not survivor.changes:
                written.write()
                threading.Event().wait(0.05)
            process.send_signal(signal.SIGKILL)
            process.wait()
            name = written.write()
            wait_for_name([survivor], name)
    check_orders(survivor)
    assert singers_of(singers) == dict.fromkeys(KEYS, name)


def test_every_part_begins_at_the_same_position(singers: Database) -> None:
    write(singers, *KEYS, name="before")
    seen = ChangeCollector()
    with run_without_error(instance(singers, seen, start="latest")):
        wait_for(lambda: len(list_holders(singers)) == PARTS)
        write(singers, *KEYS, name="after")
        seen.wait(len(KEYS))
    assert {change.new_values["LastName"] for change in seen.changes if change.new_values} == {
        "after"
    }


def test_what_is_written_while_no_instance_runs_comes_to_the_next(singers: Database) -> None:
    first, second = ChangeCollector(), ChangeCollector()
    write(singers, *KEYS, name="one")
    with run_without_error(instance(singers, first)):
        first.wait(len(KEYS))
    write(singers, 1, 2, name="two")
    with run_without_error(instance(singers, second)):
        second.wait(2)
    assert {change.key["SingerId"] for change in second.changes} == {1, 2}


def test_clearing_waits_for_every_part(singers: Database) -> None:
    seen = ChangeCollector()
    write(singers, *KEYS)
    with run_without_error(instance(singers, seen, refresh="50ms")):
        seen.wait(len(KEYS))
        parts = [part.name_consumer("orders") for part in list_parts(PARTS)]
        positions = SpannerPositions(singers)
        after = fetch_now(singers)
        wait_for(lambda: all(positions.load_all(part)["Singers"] >= after for part in parts))
    written = write(singers, 1, name="later")
    clear(singers)
    assert count_indexed(singers) == 1
    seen.changes.clear()
    with run_without_error(instance(singers, seen, clearing={"every": "50ms", "margin": 0})):
        seen.wait(1)
        wait_for(lambda: count_indexed(singers) == 0)
    assert written


def count_indexed(database: Database) -> int:
    with database.snapshot() as snapshot:
        counts = snapshot.execute_sql("SELECT COUNT(*) FROM Singers WHERE LastModified IS NOT NULL")
        return int(next(iter(counts))[0])


def test_a_consumer_is_divided_at_its_position_and_merged_again(singers: Database) -> None:
    whole, shared, again = ChangeCollector(), ChangeCollector(), ChangeCollector()
    write(singers, *KEYS, name="one")
    with run_without_error(instance(singers, whole, parts=None)):
        whole.wait(len(KEYS))
    write(singers, 1, 2, 3, name="two")
    with run_without_error(instance(singers, shared, start="latest")):
        shared.wait(3)
        with pytest.raises(LeaseHeldError, match="ctl stop"):
            merge_parts(SpannerPositions(singers), "orders")
    with run_in_thread(instance(singers, again, parts=None)) as raised:
        wait_for(lambda: bool(raised))
    assert "divided into parts" in str(raised[0])
    assert isinstance(raised[0], ConfigurationError)
    write(singers, 2, 5, name="three")
    merge_parts(SpannerPositions(singers), "orders")
    with run_without_error(instance(singers, again, parts=None, start="latest")):
        again.wait_until(lambda: newest([again]).keys() >= {2, 5})
    assert {key: name for key, name in newest([again]).items() if key in (2, 5)} == {
        2: "three",
        5: "three",
    }
    assert {change.key["SingerId"] for change in shared.changes} == {1, 2, 3}


def test_another_division_is_refused(singers: Database) -> None:
    seen = ChangeCollector()
    write(singers, *KEYS)
    with run_without_error(instance(singers, seen)):
        seen.wait(len(KEYS))
    with pytest.raises(DivisionChangedError, match="ctl merge orders"):
        instance(singers, seen, parts=2).run()
    merge_parts(SpannerPositions(singers), "orders")
    write(singers, 7, name="seven")
    with run_without_error(instance(singers, seen, parts=2)):
        seen.wait_until(lambda: newest([seen])[7] == "seven")


def sharded(create_database: CreateDatabase) -> Database:
    """A table T with four shards."""
    return create_database(*watchable_ddl("T", 4))


def test_shards_that_change_under_a_running_consumer_stop_it(
    create_database: CreateDatabase,
) -> None:
    database, seen = sharded(create_database), ChangeCollector()
    rows.write(database, *KEYS, Version=1)
    with run_in_thread(instance(database, seen, tables=["T"], parts=2)) as raised:
        seen.wait(len(KEYS))
        rows.change_schema(database, *reshard_ddl("T", 8))
        rows.write(database, 1, 2, Version=2)
        wait_for(lambda: bool(raised))
    assert isinstance(raised[0], DivisionChangedError)


@pytest.mark.parametrize("shards", [2, 8])
def test_a_backlog_from_before_the_shards_changed_is_delivered_after_a_merge(
    create_database: CreateDatabase, shards: int
) -> None:
    """With windows that would be cut in the old epoch, at another place by each part."""
    database, seen = sharded(create_database), ChangeCollector()
    rows.write(database, *KEYS, Version=1)
    with run_without_error(instance(database, seen, tables=["T"], parts=4)):
        seen.wait(len(KEYS))
    for version in range(2, 6):
        for key in KEYS:
            rows.write(database, key, Version=version)
    rows.change_schema(database, *reshard_ddl("T", shards))
    rows.write(database, *KEYS[::3], Version=6)
    with pytest.raises(DivisionChangedError):
        instance(database, seen, tables=["T"], parts=4).run()
    merge_parts(SpannerPositions(database), "orders")
    expected = {key: 6 if key % 3 == 0 else 5 for key in KEYS}
    with run_without_error(instance(database, seen, tables=["T"], parts=4, max_rows=3)):
        wait_for(lambda: newest_versions(seen.changes) == expected)
    versions = versions_by_key(seen.changes)
    assert all(each == sorted(each) for each in versions.values())


def versions_by_key(changes: Sequence[Change]) -> dict[int, list[int]]:
    versions: dict[int, list[int]] = {}
    for change in list(changes):
        key, version = change.key["Id"], (change.new_values or {})["Version"]
        assert isinstance(key, int)
        assert isinstance(version, int)
        versions.setdefault(key, []).append(version)
    return versions


def newest_versions(changes: Sequence[Change]) -> dict[int, int]:
    return {key: max(versions) for key, versions in versions_by_key(changes).items()}


def test_a_table_that_comes_later_is_divided_too(create_database: CreateDatabase) -> None:
    database = create_database(SINGERS)
    make_watchable(database)
    seen = ChangeCollector()
    write(database, *KEYS)
    with run_without_error(instance(database, seen, tables=["*"], refresh="50ms")):
        seen.wait(len(KEYS))
        database.update_ddl(
            ["CREATE TABLE Albums (AlbumId INT64, Title STRING(MAX)) PRIMARY KEY (AlbumId)"]
        ).result()
        make_watchable(database, "Albums")
        with database.batch() as batch:
            batch.insert("Albums", ("AlbumId", "Title"), [(key, "title") for key in KEYS])
        seen.wait(2 * len(KEYS))
    albums = [change.key["AlbumId"] for change in seen.changes if change.table == "Albums"]
    assert Counter(albums) == Counter(KEYS)


def test_an_operator_stops_all_parts(singers: Database) -> None:
    seen = ChangeCollector()
    write(singers, *KEYS)
    watcher = instance(singers, seen)
    with run_without_error(watcher):
        seen.wait(len(KEYS))
        for part in list_parts(PARTS):
            leases_of(singers).ask(part.name_consumer("orders"), Command.STOP)
        wait_for(lambda: watcher.stop_reason is not None)
    assert watcher.stop_reason == "an operator sent the command stop"
    assert not list_holders(singers)


def write_one_shard(database: Database, number: int) -> dict[object, object]:
    """The names of so many keys of one shard, each written by a commit of its own."""
    write(database, *range(number * 32), name="")
    with database.snapshot() as snapshot:
        rows = list(snapshot.read("Singers", ("SingerId", "ShardId"), KeySet(all_=True)))
    chosen = max(shard for _, shard in rows)
    keys = [key for key, shard in rows if shard == chosen][:number]
    for key in keys:
        write(database, key, name=f"singer {key}")
    return {key: f"singer {key}" for key in keys}


def test_an_instance_that_is_drained_delivers_what_each_of_its_parts_is_behind(
    singers: Database,
) -> None:
    """A part with nothing to deliver is done at once: it does not cut the others short."""
    seen, names = ChangeCollector(), write_one_shard(singers, 100)
    watcher = instance(singers, seen, max_rows=1)
    with run_without_error(watcher):
        seen.wait(1)
        for part in list_parts(PARTS):
            leases_of(singers).ask(part.name_consumer("orders"), Command.DRAIN)
        wait_for(lambda: watcher.stop_reason is not None)
    assert watcher.stop_reason == "an operator sent the command drain"
    assert newest([seen]) | names == newest([seen])
    for part in list_parts(PARTS):
        assert leases_of(singers).command(part.name_consumer("orders")) is None


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"consumer": None}, "'parts' needs 'consumer'"),
        ({"backfill": ["*"], "start": "latest"}, "'parts' and 'backfill'"),
        ({"transactions": True}, "'parts' and 'transactions'"),
        ({"standby": True}, "'parts' and 'standby'"),
        ({"capture": "change-stream", "start": "latest"}, "'parts' and 'capture'"),
    ],
)
def test_what_does_not_work_with_parts_is_refused(
    singers: Database, more: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        instance(singers, print, **more)


def test_a_run_that_ends_by_itself_is_refused(singers: Database) -> None:
    with pytest.raises(ConfigurationError, match="--once"):
        instance(singers, print).run_once()


def test_a_table_whose_rows_may_change_parts_is_refused(create_database: CreateDatabase) -> None:
    database = create_database(
        "CREATE TABLE Moving (Id INT64, City STRING(20),"
        " LastModified TIMESTAMP OPTIONS (allow_commit_timestamp = true),"
        " ShardId INT64 AS (MOD(ABS(FARM_FINGERPRINT(City)), 4)) STORED) PRIMARY KEY (Id)",
        "CREATE NULL_FILTERED INDEX MovingByShard ON Moving (ShardId, LastModified)",
    )
    with pytest.raises(WatcherError, match="its shard follows from City too"):
        instance(database, print, tables=["Moving"]).run()


@given(st.integers(1, 40), st.lists(st.uuids().map(str), min_size=1, max_size=12, unique=True))
def test_the_shares_of_all_are_all_parts(parts: int, members: list[str]) -> None:
    members = sorted(members)
    shares = [count_share(parts, members, member) for member in members]
    assert sum(shares) == parts
    assert max(shares) - min(shares) <= 1
    assert count_share(parts, members, "somebody else") == 0


@given(st.data(), st.integers(1, 30), st.integers(1, 8))
def test_instances_come_to_hold_every_part_once(
    data: st.DataObject, parts: int, count: int
) -> None:
    """Instances act one at a time, in any order: what is held is never held twice, and a few rounds
    lead to everybody's share."""
    everything = set(list_parts(parts))
    members = [str(number) for number in range(count)]
    held: dict[str, set[Part]] = {member: set() for member in members}
    for member in members:  # what they hold when it begins
        free = everything - set().union(*held.values())
        held[member] = data.draw(st.sets(st.sampled_from(sorted(free)))) if free else set()
    for _ in range(2):
        for member in data.draw(st.permutations(members)):
            free = everything - set().union(*held.values())
            share = count_share(parts, members, member)
            first = data.draw(st.integers(0, 50))
            shift = plan_shift(held[member], free, share, first)
            assert set(shift.take) <= free
            held[member] = (held[member] - set(shift.give_back)) | set(shift.take)
    assert {member: len(each) for member, each in held.items()} == {
        member: count_share(parts, members, member) for member in members
    }
    assert set().union(*held.values()) == everything


def test_merged_parts_begin_at_the_least_position_and_reach_as_far_as_any() -> None:
    """Who has no position in a table has delivered nothing of it."""
    here = {"T": StoredPosition(10, None), "U": StoredPosition(5, 5)}
    first = StoredConsumer("1", here, Selection(("T", "U"), ("X", "Y")).to_text())
    there, selection = {"T": StoredPosition(20, 25)}, Selection(("*",), ("Y",))
    second = StoredConsumer("2", there, selection.to_text(), Command.PAUSE)
    assert merge_positions([first, second], unplanned=100) == {
        "T": StoredPosition(10, 110),
        "U": StoredPosition(BEGINNING, 5),
    }
    expected = MovedConsumer(Selection(("T", "U", "*"), ("Y",)), Command.PAUSE)
    assert merge_states([first, second]) == expected


def test_a_part_whose_lease_runs_out_is_taken_by_somebody(singers: Database) -> None:
    written, seen = Written(singers), ChangeCollector()
    written.write()
    with run_without_error(instance(singers, seen)):
        seen.wait(len(KEYS))
        expire_lease(singers, Part(1, PARTS).name_consumer("orders"))
        wait_for_name([seen], written.write())
    check_orders(seen)


# Settings that all instances must have in common.


@pytest.mark.essential
@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"tables": ["Singers", "Albums"]},
            """'tables' is ["Albums", "Singers"] here and ["Singers"] there""",
        ),
        ({"table": {"Singers": {"columns": ["LastName"]}}}, "'table' is .* here and not set there"),
        ({"clearing": {"every": "1h"}}, "'clearing.every' is 3600.0 here and not set there"),
    ],
)
def test_an_instance_with_other_settings_is_refused(
    music: Database, more: dict[str, object], said: str
) -> None:
    write(music, *KEYS)
    first, other = ChangeCollector(), ChangeCollector()
    with run_without_error(instance(music, first)):
        first.wait(len(KEYS))
        with pytest.raises(ConfigurationError, match=re.escape(said) if "[" in said else said):
            instance(music, other, **more).run()
    assert not other.changes
    with run_without_error(instance(music, other, **more)):
        write(music, 1, name="later")
        other.wait(1)


def test_instances_may_differ_in_what_is_their_own(singers: Database) -> None:
    write(singers, *KEYS)
    first, other = ChangeCollector(), ChangeCollector()
    with (
        run_without_error(instance(singers, first)),
        run_without_error(instance(singers, other, interval="50ms", max_rows=7, lease="2s")),
    ):
        wait_for(lambda: set(names_by_key([*first.changes, *other.changes])) == set(KEYS))


def test_an_instance_of_a_release_that_stored_no_settings_is_joined() -> None:
    assert list(list_differences({"tables": "1"}, None)) == []
    assert list(list_differences({"tables": "1"}, {"tables": "1"})) == []
    assert list(list_differences({}, {"start": "2"})) == ["'start' is not set here and 2 there"]
