"""Where this user's programs keep what they can make again."""

from __future__ import annotations

import os
from pathlib import Path

NAME = "spanner-watcher"


def find_cache_folder() -> Path:
    """Below XDG_CACHE_HOME or ``~/.cache``; it may not be there yet."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", NAME)
