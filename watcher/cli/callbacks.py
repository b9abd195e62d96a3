"""Callbacks that are named on the command line."""

from __future__ import annotations

import os
import sys
from pkgutil import resolve_name

from watcher.model.errors import ConfigurationError
from watcher.sinks.functions import OnChange


def resolve_callback(name: str) -> OnChange:
    """The function ``module:function``, from the working directory where nothing that is installed
    has that name. Raises ConfigurationError."""
    # Last, and not first: a file or a folder there that has the name of a library would be loaded
    # in its place, now or by a later import.
    if (folder := os.getcwd()) not in sys.path:
        sys.path.append(folder)
    try:
        callback: OnChange = resolve_name(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"cannot import the callback '{name}' ({error}): use MODULE:FUNCTION; a module in the"
            f" working directory ({folder}) must not have the name of one that is installed"
        ) from error
    if not callable(callback):
        raise ConfigurationError(f"the callback '{name}' is not a function: use MODULE:FUNCTION")
    return callback
