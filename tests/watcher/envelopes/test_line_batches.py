"""The lines of a batch that are encoded at once are those of its changes."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures.any_batch import polled_batches, streamed_batches
from fixtures.any_change import CHOICES, DATABASE
from fixtures.singers import address_of
from google.cloud.spanner_v1.database import Database
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.reads.shaped_rows import make_polled_rows, make_streamed_rows
from watcher.captures import Changed
from watcher.captures.changes import iterate_changes
from watcher.envelopes import make_envelope
from watcher.envelopes.lines import JsonLines
from watcher.envelopes.templates import JsonEnvelope
from watcher.model.change import Change, ValueCapture
from watcher.model.errors import EnvelopeError
from watcher.runners.watcher import Watcher
from watcher.sinks import contract
from watcher.sinks.contract import EachChange
from watcher.sinks.dead_letters import read_dead_letters
from watcher.sinks.lines import Lines, RotatingFile
from watcher.sinks.retries import DeliveryPolicy, RetryingSink
from watcher.sinks.whole_batches import choose_each

ROWS = 600
any_batches: st.SearchStrategy[Changed] = polled_batches() | streamed_batches()


def write_each(rows: Changed, lines: JsonLines) -> bytes | None:
    """The lines, change by change; None where one is refused."""
    try:
        each = [line for c in iterate_changes(rows, DATABASE) for line in lines.encode(c)]
    except (EnvelopeError, ValueError):
        return None
    return "".join(f"{line}\n" for line in each).encode()


@given(any_batches, st.sampled_from(CHOICES))
def test_lines_are_the_same_at_once(rows: Changed, choice: tuple[str, dict[str, object]]) -> None:
    chosen = make_envelope(*choice)
    if not isinstance(chosen, JsonEnvelope):
        return
    lines = JsonLines(chosen)
    assert lines.encode_rows(rows, DATABASE) in (None, write_each(rows, lines))


@pytest.mark.parametrize(("name", "options"), CHOICES)
def test_usual_batches_are_encoded_at_once(name: str, options: dict[str, object]) -> None:
    chosen = make_envelope(name, options)
    if not isinstance(chosen, JsonEnvelope):
        return
    lines = JsonLines(chosen)
    for rows in (
        make_polled_rows(ROWS),
        make_streamed_rows(ROWS, ValueCapture.NEW_ROW_AND_OLD_VALUES),
    ):
        assert lines.encode_rows(rows, DATABASE) == write_each(rows, lines)


def refuse(*_arguments: object) -> Iterator[Change]:
    raise AssertionError("it is written change by change")


@pytest.mark.parametrize("to_file", [False, True])
def test_a_watcher_writes_large_batches_at_once(
    singers: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to_file: bool
) -> None:
    with singers.batch() as batch:
        batch.insert("Singers", ("SingerId", "LastName"), [(n, "Ä\n\u2028") for n in range(ROWS)])
    monkeypatch.setattr(contract, "iterate_changes", refuse)
    path, output = tmp_path / "changes.jsonl", io.StringIO()
    watcher = Watcher(
        database=str(address_of(singers)),
        tables=["Singers"],
        start="earliest",
        positions={"keep": "memory"},
    )
    watcher.deliver_to(RotatingFile(path, None) if to_file else Lines(output))
    assert watcher.run_once() == ROWS
    text = path.read_text() if to_file else output.getvalue()
    changes = [json.loads(line) for line in text.split("\n")[:-1]]
    assert sorted(each["key"]["SingerId"] for each in changes) == list(range(ROWS))
    assert {each["values"]["LastName"] for each in changes} == {"Ä\n\u2028"}


@pytest.mark.parametrize("skip", [False, True])
def test_a_batch_with_a_refused_change_is_written_change_by_change(
    tmp_path: Path, skip: bool
) -> None:
    rows = make_streamed_rows(ROWS, ValueCapture.NEW_VALUES)
    lines, letters = JsonLines(make_envelope("debezium")), tmp_path / "dead.jsonl"
    written, expected = io.StringIO(), io.StringIO()
    policy = DeliveryPolicy(dead_letters=letters if skip else None)
    sink = Lines(written, lines)
    at_once = choose_each(RetryingSink(sink, policy), sink, DATABASE)
    one_by_one = EachChange(RetryingSink(Lines(expected, lines), policy), DATABASE)
    if not skip:
        with pytest.raises(EnvelopeError):
            at_once.write(rows)
        return
    one_by_one.write(rows)
    refused = [letter["id"] for letter in read_dead_letters(letters)]
    at_once.write(rows)
    assert written.getvalue() == expected.getvalue() != ""
    assert [letter["id"] for letter in read_dead_letters(letters)] == refused * 2
    assert refused != []
