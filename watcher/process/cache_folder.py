"""Where this user's programs keep what they can make again."""

from __future__ import annotations

import os
from pathlib import Path

from watcher.model.errors import ConfigurationError

NAME = "spanner-watcher"


def find_cache_folder() -> Path:
    """Below XDG_CACHE_HOME or ``~/.cache``; it may not be there yet. Raises ConfigurationError for
    a user without a home: in a folder for temporary files, others could put files before us."""
    chosen = os.environ.get("XDG_CACHE_HOME")
    try:
        return Path(chosen or Path.home() / ".cache", NAME)
    except RuntimeError as error:
        raise ConfigurationError(
            "this user has no home: set XDG_CACHE_HOME to a folder for files that can be made again"
        ) from error
