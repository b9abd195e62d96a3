"""The database that a run watches, and where its positions and leases are kept."""

from __future__ import annotations

from google.cloud.spanner_v1.database import Database

from watcher.consumers.leases import Consumers
from watcher.consumers.positions import (
    FilePositions,
    MemoryPositions,
    Positions,
    SpannerPositions,
)
from watcher.settings.watcher import WatchConfig
from watcher.spanner.database import connect


class Connection:
    """Opened when a run starts, and again when the server has lost the client's session."""

    def __init__(self, config: WatchConfig, memory: MemoryPositions) -> None:
        """Connects, and creates the tables for positions and consumers where they are missing.

        ``memory`` keeps the positions of a watcher without a consumer from one run to the next.
        """
        self._config = config
        self._memory = memory
        self.lost = False
        """True when the session is lost: the next window begins with ``reopen``."""
        self.database: Database = connect(config.address)
        self.positions, self.consumers = self._open_positions()

    def reopen(self) -> None:
        """Connects again: the client would keep a session that is lost for weeks."""
        self.database = connect(self._config.address)
        self.positions, self.consumers = self._open_positions()
        self.lost = False

    def _open_positions(self) -> tuple[Positions, Consumers | None]:
        """Where positions are kept, and leases where several machines can see them."""
        settings = self._config.positions
        if settings.keep == "file" and settings.path is not None:
            return FilePositions(settings.path), None
        if settings.keep == "memory" or self._config.consumer is None:
            return self._memory, None
        database = self.database
        if self._config.keeps_positions_apart:
            database = connect(self._config.positions_address)
        positions = SpannerPositions(database, settings.table)
        positions.create()
        return positions, Consumers(database, settings.table)
