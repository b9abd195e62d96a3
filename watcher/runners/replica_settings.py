"""What the settings say of a replica, whatever writes it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from watcher.model.errors import ConfigurationError
from watcher.settings.sections import ReplicaConfig
from watcher.settings.watcher import WatchConfig


def require_replica(config: WatchConfig) -> ReplicaConfig:
    """The section of the replica. Raises ConfigurationError without one."""
    if config.replica is None:
        raise ConfigurationError(
            "the replica's folder is missing: use --to delta:FOLDER, or to = 'delta:FOLDER' in"
            " [replica]"
        )
    return config.replica


def name_consumer(folder: str) -> str:
    """The name for a replica that was not given one: another folder has another."""
    place = folder if "://" in folder else str(Path(folder).resolve())
    return f"replica-{hashlib.blake2b(place.encode(), digest_size=5).hexdigest()}"
