"""Moved to ``watcher.runners.java``; this name goes with the next release."""

from __future__ import annotations

import warnings

from watcher.runners.java import JavaNotFoundError, ensure_java

__all__ = ["JavaNotFoundError", "ensure_java"]

warnings.warn(
    "watcher.java has moved: import ensure_java from watcher.runners.java",
    DeprecationWarning,
    stacklevel=2,
)
