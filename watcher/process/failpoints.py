"""Named places to crash, for tests only."""

from __future__ import annotations

import os
import signal

VARIABLE = "SPANNER_WATCHER_FAILPOINT"

NAMES = (
    "after-delivery-before-position",
    "before-lines-are-replaced",
    "after-lines-are-replaced",
    "after-backfill-page-before-progress",
    "after-cleared-to-before-clearing",
    "after-replica-rows",
    "after-replica-files",
    "after-replica-commit",
    "after-replica-columns",
    "after-replica-table",
    "after-replica-tables",
    "after-replica-cut",
    "after-repair-files",
    "after-repair-commit",
    "after-repair-tables",
    "after-repair-cut",
    "after-file",
    "before-tables-commit",
    "after-tables-commit",
    "before-redis-exec",
    "after-redis-exec",
    "before-nats-window",
    "after-nats-window",
    "after-arrival-before-move",
    "after-move-before-opening",
    "after-proved-ranges",
    "before-rewrite",
    "after-rewrite",
    "after-rewrite-files",
    "after-rewrite-commit",
    "after-files-removed",
)


def failpoint(name: str) -> None:
    """Kills the process with -9 when the environment names this place."""
    if os.environ.get(VARIABLE) == name:
        os.kill(os.getpid(), signal.SIGKILL)
