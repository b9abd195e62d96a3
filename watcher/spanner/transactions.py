"""Read-write transactions in which a process may die without holding anybody up.

By default Spanner locks what a transaction reads, and keeps these locks for ten seconds when its
client is gone: an instance that is killed before its commit would hold up the one that takes over,
and a clearing that is killed the applications that write. An optimistic transaction locks nothing
before its commit, which checks that what was read still holds
(https://docs.cloud.google.com/spanner/docs/concurrency-control).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from google.api_core.exceptions import Aborted
from google.cloud.spanner_v1 import TransactionOptions
from google.cloud.spanner_v1.database import Database

Result = TypeVar("Result")

LockMode = TransactionOptions.ReadWrite.ReadLockMode
OPTIMISTIC_SECONDS = 1.0
"""So long it is tried without locks. Who is aborted again and again locks what it reads after
that: Spanner lets the oldest of those win."""


def run_optimistically(
    database: Database, work: Callable[..., Result], **options: object
) -> Result:
    """``run_in_transaction``, without locks before the commit unless others change all the time
    what it reads. ``options`` are the client's."""
    # assumes: optimistic-conflict
    attempt: Callable[..., Any] = database.run_in_transaction
    try:
        result: Result = attempt(
            work, read_lock_mode=LockMode.OPTIMISTIC, timeout_secs=OPTIMISTIC_SECONDS, **options
        )
    except Aborted:
        result = attempt(work, **options)
    return result
