"""The page of the log's events."""

from __future__ import annotations

from collections.abc import Iterator
from logging import getLevelName
from types import ModuleType

from reference_pages.markdown import (
    code,
    format_prose,
    make_page,
    make_table,
    require_text,
)
from watcher.model.log_events.event import Event
from watcher.model.log_events.registry import EVENTS, MODULES, list_events


def describe_event(event: Event) -> tuple[str, str, str, str]:
    """Name, level, fields and meaning of an event. Raises MissingDescriptionError."""
    meaning = require_text(event.meaning, event.name, "watcher/model/log_events/")
    level = getLevelName(event.level).lower()
    return code(event.name), level, ", ".join(map(code, event.fields)), format_prose(meaning)


def describe_module(module: ModuleType) -> Iterator[str]:
    """A heading, and the events by name."""
    yield f"## {require_text(module.__doc__, module.__name__, 'its file').rstrip('.')}"
    yield ""
    events = sorted(list_events(module), key=lambda each: each.name)
    yield from make_table(
        ("event", "level", "fields", "what it means, and what to do"), map(describe_event, events)
    )


def make_log_events_page() -> str:
    """docs/reference/log-events.md. Raises MissingDescriptionError."""
    return make_page(
        "Log events",
        f"The {len(EVENTS)} events that commands, watchers and Spark queries log"
        " ([the log](../watch.md#log)). Names, levels and fields are stable, messages are not.",
        "",
        *(line for module in MODULES for line in describe_module(module)),
    )
