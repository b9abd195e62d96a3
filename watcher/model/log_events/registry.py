"""All events, by name."""

from __future__ import annotations

from types import ModuleType

from watcher.model.log_events import copies, delivery, reading, running, spark
from watcher.model.log_events.event import Event


def list_events(module: ModuleType) -> list[Event]:
    """The events of a module, in its order."""
    return [each for each in vars(module).values() if isinstance(each, Event)]


MODULES = (running, reading, delivery, copies, spark)
EVENTS = {each.name: each for module in MODULES for each in list_events(module)}
