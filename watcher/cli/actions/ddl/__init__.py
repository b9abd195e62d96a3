"""What each ``ddl`` command does. A module is loaded when its command runs."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watcher.cli.actions.ddl import change_stream as change_stream
    from watcher.cli.actions.ddl import changelog as changelog
    from watcher.cli.actions.ddl import lint as lint
    from watcher.cli.actions.ddl import migrate as migrate
    from watcher.cli.actions.ddl import request as request
    from watcher.cli.actions.ddl import rollback as rollback
    from watcher.cli.actions.ddl import status as status

MODULES = {"change_stream", "changelog", "lint", "migrate", "request", "rollback", "status"}


def __getattr__(name: str) -> ModuleType:
    """Loads the module of a command. Raises AttributeError."""
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
