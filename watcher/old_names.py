"""Names of the version before: they are accepted for one release, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

CALLER = 3
"""The frame that used the name: above it are ``__getattr__`` and this module's function."""


def find_new_name(module: str, renamed: Mapping[str, str], name: str) -> str:
    """What an attribute of a module is called now; for its ``__getattr__``. Raises AttributeError
    for a name that it never had."""
    if name not in renamed:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    warnings.warn(f"{name} is now called {renamed[name]}", DeprecationWarning, stacklevel=CALLER)
    return renamed[name]
