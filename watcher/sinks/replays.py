"""Delivers the dead letters of a running consumer again, where its changes go, as operators ask."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from watcher.model.change import Change
from watcher.model.errors import ConfigurationError, SinkUnavailableError
from watcher.process.line_files import replace_lines
from watcher.process.text_files import read_text_file
from watcher.settings.destinations import Destination
from watcher.sinks.dead_letters import count_dead_letters, extract_change, parse_dead_letters
from watcher.sinks.retries import RetryingSink


@dataclass(frozen=True, slots=True)
class Replay:
    """How many letters were read, and how many are in the file now: those that were refused again,
    and those of release 1.0, of which ``spanner-watcher replay`` delivers the record."""

    read: int
    left: int


def refuse_replay() -> ConfigurationError:
    """The error of a consumer that keeps no dead letters."""
    return ConfigurationError(
        "the consumer keeps no dead letters, so that none can be delivered again: set"
        " delivery.then = 'skip' and delivery.dead_letters"
    )


def refuse_late(destination: Destination) -> ConfigurationError:
    """The error of a destination that takes no change behind newer ones."""
    return ConfigurationError(
        f"{destination} takes a change once, in the order of commits, and none behind newer ones:"
        " use 'spanner-watcher replay FILE --callback MODULE:FUNCTION'"
    )


def replay_dead_letters(path: Path, sink: RetryingSink) -> Replay:
    """At least once: a letter leaves the file when the sink has its change. Raises
    ConfigurationError for a file that cannot be read, and what the sink raises."""
    text = read_text_file(path) if path.exists() else ""
    changes, kept = read_changes(path, text)
    try:
        write_all(changes, sink)
    except BaseException:
        sink.discard()
        raise
    if changes:
        replace_lines(path, text, kept)
    return Replay(len(changes) + len(kept), count_dead_letters(path))


def read_changes(path: Path, text: str) -> tuple[list[Change], list[str]]:
    """The changes of a file, and the lines that hold none."""
    changes, kept = [], []
    letters = parse_dead_letters(path, text)
    for number, (letter, line) in enumerate(zip(letters, text.splitlines(), strict=True), 1):
        try:
            change = extract_change(letter)
        except (ArithmeticError, KeyError, TypeError, ValueError) as error:
            raise ConfigurationError(
                f"{path}:{number} is not a dead letter ({error!r}): fix or delete this line"
            ) from error
        if change is None:
            kept.append(line)
        else:
            changes.append(change)
    return changes, kept


def write_all(changes: list[Change], sink: RetryingSink) -> None:
    """Hands changes over; those that are refused again become letters again. Where all was rolled
    back with them, the others are handed over once more."""
    while True:
        known = sink.skipped
        for change in changes:
            sink.write_change(change)
        try:
            sink.flush()
        except SinkUnavailableError:
            if sink.skipped == known:
                raise
        else:
            return
