"""Functions that a call alone does not run are refused, wherever a function is taken."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.commands import run_command
from fixtures.singers import address_of, write_singers
from google.cloud.spanner_v1.database import Database

from watcher import Watcher
from watcher.model.errors import ConfigurationError, DeliveryError
from watcher.sinks.callbacks import Callback

seen: list[object] = []
"""What the functions below have really taken."""


async def take_async(change: object) -> None:
    seen.append(change)


def take_as_generator(change: object) -> Iterator[None]:
    seen.append(change)
    yield


async def take_as_async_generator(change: object) -> AsyncIterator[None]:
    seen.append(change)
    yield


def take_now(change: object) -> None:
    seen.append(change)


class AsyncCall:
    async def __call__(self, change: object) -> None:
        seen.append(change)

    async def method(self, change: object) -> None:
        seen.append(change)


def decorate(function: Callable[[object], object]) -> Callable[[object], object]:
    @functools.wraps(function)
    def wrapper(change: object) -> object:
        return function(change)

    return wrapper


def run_to_its_end(function: Callable[[object], Any]) -> Callable[[object], object]:
    @functools.wraps(function)
    def wrapper(change: object) -> object:
        return asyncio.run(function(change))

    return wrapper


def take_two(_first: object, change: object) -> None:
    seen.append(change)


async def take_two_async(_first: object, change: object) -> None:
    seen.append(change)


DEFERRED: list[Any] = [
    take_async,
    take_as_generator,
    take_as_async_generator,
    AsyncCall(),
    AsyncCall().method,
    functools.partial(take_two_async, 1),
    functools.partial(functools.partial(AsyncCall())),
]
RETURNING: list[Any] = [
    decorate(take_async),
    decorate(take_as_generator),
    decorate(take_as_async_generator),
    lambda change: [take_async(change)][0],
    lambda _change: asyncio.new_event_loop().create_future(),
]
ACCEPTED: list[Any] = [
    take_now,
    print,
    seen.append,
    functools.partial(take_two, 1),
    decorate(take_now),
    run_to_its_end(take_async),
    lambda change: [change],
]


def watch(database: Database, **more: Any) -> Watcher:
    return Watcher(
        database=str(address_of(database)),
        tables=["Singers"],
        consumer="c",
        start="earliest",
        **more,
    )


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    seen.clear()


@pytest.fixture
def unconnected(monkeypatch: pytest.MonkeyPatch) -> Watcher:
    """A watcher that never runs."""
    monkeypatch.setenv("SPANNER_EMULATOR_HOST", "127.0.0.1:1")
    return Watcher(database="projects/p1/instances/i1/databases/d1", transactions=True)


@pytest.mark.parametrize("function", DEFERRED)
def test_a_function_whose_call_runs_nothing_is_refused_at_the_start(
    unconnected: Watcher, function: Any
) -> None:
    w = unconnected
    for take in (w.on_change, w.on_batch, w.on_transaction, w.on_start):
        with pytest.raises(ConfigurationError, match=r"(async|generator) function: a call of it"):
            take(function)
    with pytest.raises(ConfigurationError, match="function: a call of it"):
        Callback(function)


@pytest.mark.parametrize("function", RETURNING)
def test_an_awaitable_that_comes_back_is_an_error_and_nothing_was_taken(function: Any) -> None:
    with pytest.raises(DeliveryError, match="its work is not done"):
        Callback(function)("change")
    assert seen == []


@pytest.mark.parametrize("function", ACCEPTED)
def test_a_function_that_returns_after_its_work_is_called(function: Any) -> None:
    Callback(function)("change")


def test_a_sink_with_async_methods_is_refused(unconnected: Watcher) -> None:
    class AsyncSink:
        async def write_change(self, change: object) -> None:
            seen.append(change)

        def resolved(self, micros: int) -> None: ...

        def flush(self) -> None: ...

        def discard(self) -> None: ...

    with pytest.raises(ConfigurationError, match=r"AsyncSink\.write_change' is an async function"):
        unconnected.deliver_to(AsyncSink())  # type: ignore[arg-type]


@pytest.mark.parametrize("way", ["on_change", "on_batch", "on_transaction"])
def test_no_position_is_saved_for_what_an_awaitable_was_to_take(
    singers: Database, way: str
) -> None:
    write_singers(singers, range(3), "name")
    watcher = watch(singers, transactions=way == "on_transaction")
    getattr(watcher, way)(decorate(take_async))
    with pytest.raises(DeliveryError):
        watcher.run_once()
    again = watch(singers)
    again.on_change(take_now)
    again.run_once()
    assert len(seen) == 3


CODE = "async def later(change): ...\ndef lazy(change):\n    return later(change)\n"


@pytest.mark.parametrize(("name", "code"), [("later", 2), ("lazy", 9)])
def test_the_command_refuses_it_and_the_next_start_delivers(
    singers: Database, tmp_path: Path, name: str, code: int
) -> None:
    (tmp_path / "taking.py").write_text(CODE)
    write_singers(singers, range(3), "name")
    arguments = ["watch", "-d", str(address_of(singers)), "-t", "Singers", "--once"]
    arguments += ["--consumer", "c", "--from", "earliest"]
    ended = run_command(*arguments, "--callback", f"taking:{name}", PYTHONPATH=str(tmp_path))
    assert ended.returncode == code, ended.stderr
    assert len(run_command(*arguments).stdout.splitlines()) == 3


@pytest.mark.parametrize(("name", "code"), [("later", 2), ("lazy", 1)])
def test_replay_keeps_the_letters_that_nobody_has_taken(
    tmp_path: Path, name: str, code: int
) -> None:
    (tmp_path / "taking.py").write_text(CODE)
    letters = tmp_path / "dead.jsonl"
    letters.write_text(json.dumps({"id": "x", "error": "before"}) + "\n")
    replay = ["replay", str(letters), "--callback", f"taking:{name}"]
    ended = run_command(*replay, PYTHONPATH=str(tmp_path))
    assert ended.returncode == code, ended.stderr
    assert [json.loads(line)["id"] for line in letters.read_text().splitlines()] == ["x"]
