"""The guards of the protocol, one value each: a call that refuses who may not go on. Each is
removed once, and the explorer has to find a violation.

``test_guards.py`` looks for such calls in the product: a new one needs a value here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from interleavings.patches import patch_attribute, patch_everywhere
from watcher.consumers.divisions import Divisions
from watcher.consumers.holding import Holding
from watcher.consumers.positions.rows import StoredRows

CONSUMERS, POSITIONS = "watcher.consumers.", "watcher.consumers.positions."
DELIVERY, SINKS = "watcher.runners.delivery.", "watcher.sinks."


@dataclass(frozen=True)
class Guard:
    """A call of ``check`` in a function (``site``: the module and the function's qualified name).
    ``variant`` is where a schedule needs it; ``owner`` is the class of a method."""

    site: str
    check: str
    variant: str
    owner: type | None = None
    seed: int = 1

    @property
    def name(self) -> str:
        """As it is shown."""
        return f"no {self.check} in {self.site.removeprefix('watcher.')}"

    @property
    def place(self) -> tuple[str, str]:
        """What ``test_guards.py`` finds."""
        return self.site, self.check

    def remove(self) -> AbstractContextManager[None]:
        """While it lasts, the call does nothing."""
        return skip_calls(self)


@contextmanager
def skip_calls(guard: Guard) -> Iterator[None]:
    """While it lasts, calls of a check from one function do nothing; others are as ever."""
    module, _, function = guard.site.partition(":")
    owner = guard.owner
    real = vars(owner or import_module(module))[guard.check]

    def check(*arguments: Any, **options: Any) -> Any:
        frame = sys._getframe(1)
        caller = frame.f_code.co_qualname.replace(".<locals>", "")
        if (frame.f_globals["__name__"], caller) == (module, function):
            return None
        return real(*arguments, **options)

    with patch_attribute(owner, guard.check, check) if owner else patch_everywhere(real, check):
        yield


GUARDS = (
    # Each durable write is the owner's.
    Guard(f"{POSITIONS}spanner:SpannerPositions.register.register", "check_owner", "takeover"),
    Guard(
        f"{POSITIONS}spanner:SpannerPositions.register.register",
        "check_still_in_index",
        "stream-to-poll",
    ),
    Guard(f"{POSITIONS}spanner:SpannerPositions.save_all.save", "check_owner", "frozen-backfill"),
    Guard(f"{POSITIONS}spanner:SpannerPositions.plan_ends.plan", "check_owner", "cut-takeover"),
    Guard(f"{POSITIONS}spanner:SpannerPositions.remove.remove", "check_owner", "dropped-table"),
    Guard(f"{POSITIONS}spanner:SpannerPositions._read_owned", "demand_owner", "frozen"),
    Guard(f"{POSITIONS}spanner:check_owner", "demand_owner", "clearing-takeover"),
    Guard(f"{CONSUMERS}leases:Consumers.store_error.insert", "check_owner", "frozen"),
    Guard(
        f"{CONSUMERS}clearing.bounds:SharedPositions.announce.write",
        "check_owner",
        "clearing-takeover",
    ),
    # A consumer is moved as a whole, and who held it before is kept out.
    Guard(f"{CONSUMERS}leases:Consumers.acquire.take", "check_division", "merge", StoredRows),
    Guard(f"{POSITIONS}rows:StoredRows.check_division", "check_divided", "merge", StoredRows),
    Guard(f"{CONSUMERS}members:Members.renew.write", "check_divided", "merge", StoredRows),
    Guard(f"{CONSUMERS}divisions:Divisions.settle.write", "_check", "other-parts", Divisions),
    Guard(f"{CONSUMERS}divisions:Divisions._move_to_parts", "check_ended", "divide", StoredRows),
    Guard(f"{CONSUMERS}merging:merge_parts.find", "check_ended", "merge", StoredRows),
    Guard(f"{POSITIONS}unregister:unregister.find", "check_not_alive", "forget"),
    Guard(f"{CONSUMERS}leases:Consumers.acquire.take", "check_name", "rename"),
    Guard(f"{CONSUMERS}moving:read_movable", "check_ended", "rename", StoredRows),
    # Nothing is handed over on a lease that may have run out.
    Guard(f"{SINKS}retries:RetryingSink.deliver", "check", "frozen", Holding),
    Guard(f"{SINKS}functions:EachTransaction.flush", "check", "frozen-transactions", Holding),
    Guard(f"{DELIVERY}windows:WindowDelivery._hand_over", "check", "frozen-batches", Holding),
    Guard(f"{DELIVERY}backfill:BackfillDelivery._deliver_page", "check", "frozen-pages", Holding),
)

MOVES = (
    "moves to other databases and backups are not explored: test_moves.py, test_consumer_backups.py"
)

NOT_EXPLORED: dict[tuple[str, str], str] = {
    (f"{POSITIONS}content:WholePositions.save_all", "check_backfills"): (
        "positions of one process, in a file or in memory: nobody takes them over"
    ),
    (f"{POSITIONS}spanner:SpannerPositions._move_backfills", "check_backfills"): (
        "the check of the owner stands before it; the fault 'backfill progress is a blind write'"
        " takes both away"
    ),
    (f"{POSITIONS}values:apply_moves", "check_forward"): (
        "a rule of arguments, not of schedules: no caller asks for less than it expects"
    ),
    (f"{DELIVERY}push:PushDelivery._write_rows", "check"): (
        "open queries are not explored: test_a_thawed_instance_delivers_no_further_change"
    ),
    (f"{SINKS}redis:RedisSink._execute", "_check_epoch"): (
        "Redis is not explored: test_an_instance_that_was_replaced_writes_nothing and"
        " test_an_epoch_that_changes_within_a_window_is_seen of test_redis.py"
    ),
    ("watcher.runners.spark.consumer:QueryConsumer.advance", "check"): (
        "the write that follows is fenced by _read_owned"
    ),
    ("watcher.runners.spark.consumer:QueryConsumer._hold", "check"): (
        "a query's sink is its own: test_a_query_that_was_suspended_renews_its_lease_or_ends"
    ),
    ("watcher.consumers.backups:back_up", "check_filled"): MOVES,
    ("watcher.consumers.backups:check_replaceable", "check_ended"): MOVES,
    ("watcher.consumers.backups:restore.look", "check_replaceable"): MOVES,
    ("watcher.consumers.leases:Consumers.ask.write", "check_name"): MOVES,
    ("watcher.consumers.moving:check_room", "check_name"): MOVES,
    ("watcher.consumers.moving:move_across.arrive", "check_kept"): MOVES,
    ("watcher.consumers.moving:move_across.arrive", "check_room"): MOVES,
    ("watcher.consumers.moving:move_consumer", "check_kept"): MOVES,
    ("watcher.consumers.moving:move_consumer", "check_room"): MOVES,
    ("watcher.consumers.moving:move_within.move", "check_kept"): MOVES,
    ("watcher.consumers.moving:move_within.move", "check_room"): MOVES,
    ("watcher.consumers.moving:read_whole", "check_name"): MOVES,
    ("watcher.consumers.positions.rows:StoredRows.check_ended", "check_filled"): MOVES,
    ("watcher.consumers.positions.rows:StoredRows.check_ended", "check_name"): MOVES,
    ("watcher.consumers.positions.unregister:check_not_alive", "check_name"): MOVES,
}
"""Calls of checks that no schedule needs, and why."""
