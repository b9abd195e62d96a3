"""``status --watch``: what the page shows, in a terminal or as lines of JSON."""

from __future__ import annotations

import json
import signal

import pytest
from fixtures.commands import (
    SECONDS,
    run_command,
    run_in_terminal,
    run_with_reader_of_one_line,
    start_program,
)
from fixtures.consumers import consumers_of, watcher_of, write
from fixtures.singers import address_of
from google.cloud.spanner_v1.database import Database

from watcher.cli.status_watch import format_span
from watcher.consumers.states import ConsumerProgress, State

WATCH = ("status", "--watch", "--staleness", "0s", "--every", "100ms")


def where(database: Database) -> tuple[str, ...]:
    return "-d", str(address_of(database))


def lines_until_signal(database: Database, *arguments: str, lines: int) -> list[str]:
    """The first lines of the command, which then gets a signal and ends with 0."""
    with start_program(*WATCH, *where(database), *arguments) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        shown = [process.stdout.readline() for _ in range(lines)]
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=SECONDS)
        assert (process.returncode, errors) == (0, "")
    return shown


def test_each_read_is_a_line_of_json(music: Database) -> None:
    write(music, 1, 2)
    watcher_of(music, [], consumer="me").run_once()
    first, second = map(json.loads, lines_until_signal(music, "--json", lines=2))
    assert first["consumers"][0]["delivered_rows"] == 2
    assert second["read_at"] > first["read_at"]


def test_people_see_consumers_deadlines_and_indexes(music: Database) -> None:
    write(music, 1, 2)
    watcher_of(music, [], consumer="me").run_once()
    shown = "".join(lines_until_signal(music, lines=14))
    assert "finished" in shown
    assert "none; exact for" in shown
    assert "index of" in shown
    assert "clearing waits for" in shown


def test_a_narrow_terminal_has_the_whole_error_below_the_table(music: Database) -> None:
    consumers = consumers_of(music)
    watcher_of(music, [], consumer="me").run_once()
    lease = consumers.acquire("me")
    consumers.store_error("me", ValueError("a long story " * 20 + "with an end"))
    consumers.renew(lease, State.FAILED, ConsumerProgress())
    shown = run_in_terminal(100, *WATCH, *where(music), until="Ctrl-C ends")
    assert "with an end" in shown
    assert "me: failing" in shown


def test_one_consumer_is_shown_alone(music: Database) -> None:
    for name in ("me", "you"):
        watcher_of(music, [], consumer=name).run_once()
    (line,) = lines_until_signal(music, "--json", "--consumer", "you", lines=1)
    assert [each["consumer"] for each in json.loads(line)["consumers"]] == ["you"]


def test_a_reader_that_has_gone_ends_it_quietly(music: Database) -> None:
    line, errors, code = run_with_reader_of_one_line(*WATCH, *where(music), "--json")
    assert json.loads(line)["consumers"] == []
    assert (errors, code) == ("", 141)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("--errors",), 2), (("--every", "0s"), 2), (("--consumer", "nobody"), 4)],
)
def test_what_it_does_not_take(music: Database, arguments: tuple[str, ...], code: int) -> None:
    result = run_command("status", "--watch", *where(music), *arguments)
    assert result.returncode == code, result.stderr


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(3.04, "3.0 s"), (60, "60 s"), (3_000, "50 min"), (7_260, "2 h 01 min"), (180_000, "2 d 2 h")],
)
def test_lengths_of_time(seconds: float, text: str) -> None:
    assert format_span(seconds) == text
