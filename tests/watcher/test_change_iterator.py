"""``Watcher.changes``: a loop over changes, plain and asynchronous; Ctrl-C; the public names."""

from __future__ import annotations

import asyncio
import inspect
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fixtures.envelope_examples import example_change
from fixtures.pace import allow
from fixtures.singers import address_of, write_singers
from fixtures.warm_python import WarmProcess
from google.cloud.spanner_v1.database import Database

import watcher as package
from watcher import Change, Operation, Watcher
from watcher.model.errors import ConfigurationError, TableNotFoundError, WatcherError
from watcher.runners.watcher_run.lifecycle import READER_GONE

SECONDS = 60


def make_watcher(database: Database, **more: Any) -> Watcher:
    settings = {"tables": ["Singers"], "consumer": "loop", "start": "earliest", "interval": "20ms"}
    return Watcher(**{"database": str(address_of(database))} | settings | more)


def read_once(database: Database) -> list[Change]:
    return list(make_watcher(database).changes(once=True))


def key_of(change: Change) -> int:
    key = change.key["SingerId"]
    assert isinstance(key, int)
    return key


def test_a_loop_reads_every_change_and_what_it_asked_past_does_not_come_again(
    singers: Database,
) -> None:
    write_singers(singers, range(5), "name")
    assert sorted(map(key_of, read_once(singers))) == list(range(5))
    assert read_once(singers) == []


@pytest.mark.parametrize("taken", [1, 3])
def test_a_loop_that_is_left_acknowledges_nothing_of_its_window(
    singers: Database, taken: int
) -> None:
    write_singers(singers, range(3), "name")
    watcher = make_watcher(singers)
    before = []
    for change in watcher.changes():
        before.append(change.id)
        if len(before) == taken:
            break
    assert watcher.stop_reason == READER_GONE
    again = [change.id for change in read_once(singers)]
    assert again[:taken] == before
    assert len(again) == 3


def test_an_acknowledged_change_is_done_without_another_one(singers: Database) -> None:
    write_singers(singers, [1, 2], "name")
    with make_watcher(singers).changes() as changes:
        for number, _ in enumerate(changes, start=1):
            if number == 2:
                changes.acknowledge()
                break
    assert read_once(singers) == []


def test_a_change_whose_work_has_failed_comes_again(singers: Database) -> None:
    write_singers(singers, [1], "name")

    def fail() -> None:
        with make_watcher(singers).changes() as changes:
            for _ in changes:
                raise KeyError("work")

    with pytest.raises(KeyError):
        fail()
    assert [key_of(change) for change in read_once(singers)] == [1]


def test_a_loop_ends_with_the_watcher_and_raises_what_it_raises(singers: Database) -> None:
    write_singers(singers, [1], "name")
    watcher = make_watcher(singers)
    for _ in watcher.changes():
        watcher.stop()
    with pytest.raises(TableNotFoundError):
        list(make_watcher(singers, tables=["Nobody"]).changes())
    changes = make_watcher(singers).changes(once=True)
    list(changes)
    with pytest.raises(WatcherError, match="call changes"):
        list(changes)
    with pytest.raises(ConfigurationError, match=r"leave out delivery\.envelope"):
        make_watcher(singers, delivery={"envelope": "debezium"}).changes()


def test_an_asynchronous_loop_reads_every_change_beside_other_tasks(singers: Database) -> None:
    async def read() -> tuple[list[int], int]:
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                beats += 1
                await asyncio.sleep(0)

        heart = asyncio.create_task(beat())
        keys = [key_of(change) async for change in make_watcher(singers).changes(once=True)]
        heart.cancel()
        return keys, beats

    write_singers(singers, range(5), "name")
    keys, beats = asyncio.run(read())
    assert sorted(keys) == list(range(5))
    assert beats > 0
    assert read_once(singers) == []


def test_an_asynchronous_loop_that_is_cancelled_loses_nothing(singers: Database) -> None:
    """The task has a change in its hands."""
    write_singers(singers, range(4), "name")

    async def read_some() -> list[int]:
        taken: list[int] = []

        async def read() -> None:
            async with make_watcher(singers).changes() as changes:
                async for change in changes:
                    taken.append(key_of(change))
                    if len(taken) == 2:
                        await asyncio.Event().wait()

        reading = asyncio.create_task(read())
        while len(taken) < 2:
            await asyncio.sleep(0.01)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        return taken

    taken = asyncio.run(read_some())
    again = [key_of(change) for change in read_once(singers)]
    assert again[:2] == taken
    assert sorted(again) == list(range(4))


PROGRAM = """
from watcher import Watcher
watcher = Watcher(database={database!r}, tables=["Singers"], start="earliest", interval="20ms")
watcher.on_change(lambda change: print("read", flush=True))
watcher.run()
print("ended:", watcher.stop_reason)
"""


def test_ctrl_c_ends_a_run_after_its_window_without_a_traceback(singers: Database) -> None:
    write_singers(singers, [1], "name")
    program = ["-c", PROGRAM.format(database=str(address_of(singers)))]
    with WarmProcess(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "read\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=allow(SECONDS))
    assert (process.returncode, out) == (0, "ended: Ctrl-C\n"), err
    assert "Traceback" not in err


def test_a_run_leaves_the_handler_of_a_program_alone(singers: Database) -> None:
    def mine(*_: object) -> None:
        """A handler of the program's own."""

    before = signal.signal(signal.SIGINT, mine)
    try:
        watcher = make_watcher(singers)
        seen: list[object] = []
        watcher.on_change(lambda _: seen.append(signal.getsignal(signal.SIGINT)))
        write_singers(singers, [1], "name")
        watcher.run_once()
        assert seen == [mine]
        assert signal.getsignal(signal.SIGINT) is mine
        signal.signal(signal.SIGINT, signal.default_int_handler)
        write_singers(singers, [1], "other")
        watcher.run_once()
        assert seen[1] is not mine
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


# What a program sees of the package.


def test_a_change_prints_as_one_short_line() -> None:
    change = example_change()
    assert repr(change).startswith(f"<Change {change.operation} {change.table} ")
    long = replace(change, new_values={f"Column{n}": "x" * 5_000 for n in range(50)})
    assert len(repr(long)) < 400
    assert "\n" not in repr(long)
    assert "46 more" in repr(long)
    gone = replace(change, operation=Operation.DELETE, new_values=None)
    assert repr(gone).endswith("Z>")


def list_public() -> Iterator[tuple[str, Any]]:
    """Every public name of the package, and every public method and property of its classes."""
    for name in package.__all__:
        value = getattr(package, name)
        yield name, value
        if not inspect.isclass(value):
            continue
        for member, found in vars(value).items():
            known = inspect.isfunction(found) or isinstance(found, property | classmethod)
            if known and (not member.startswith("_") or member == "__init__"):
                yield f"{name}.{member}", found


PUBLIC = dict(list_public())


@pytest.mark.parametrize("name", PUBLIC)
def test_what_is_public_is_described_and_typed(name: str) -> None:
    value = PUBLIC[name]
    function = value.fget if isinstance(value, property) else value
    function = getattr(function, "__func__", function)
    if not name.endswith("__init__"):
        assert inspect.getdoc(value), name
    if not inspect.isfunction(function) or function.__module__.split(".")[0] != "watcher":
        return
    signature = inspect.signature(function)
    for each in list(signature.parameters.values())[1 if "." in name else 0 :]:
        assert each.annotation is not inspect.Parameter.empty, f"{name}: {each.name}"
    if not name.endswith("__init__"):
        assert signature.return_annotation is not inspect.Signature.empty, name


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(package.__file__).parent / "py.typed").is_file()
