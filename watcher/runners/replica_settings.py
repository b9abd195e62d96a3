"""What the settings say of a replica, whatever writes it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from watcher.model.errors import ConfigurationError
from watcher.replica.stores.places import name_place
from watcher.settings.destination_grammar import CopiesDestination
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


def name_consumer(copies: CopiesDestination) -> str:
    """The name for a replica that was not given one: another place has another."""
    place = name_place(copies.place)
    if not copies.in_catalog and "://" not in place:
        place = str(Path(place).resolve())
    return f"replica-{hashlib.blake2b(place.encode(), digest_size=5).hexdigest()}"
