"""Callbacks that are named on the command line."""

from __future__ import annotations

import sys
from pkgutil import resolve_name

from watcher.errors import ConfigurationError
from watcher.runners.delivery.sinks import OnChange


def resolve_callback(name: str) -> OnChange:
    """The function ``module:function``. Raises ConfigurationError."""
    sys.path.insert(0, "")
    try:
        callback: OnChange = resolve_name(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"cannot import the callback '{name}' ({error}): use MODULE:FUNCTION"
        ) from error
    if not callable(callback):
        raise ConfigurationError(f"the callback '{name}' is not a function: use MODULE:FUNCTION")
    return callback
