"""Faults that the product had, as patches that put them back: the explorer has to find each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import interleavings.scenarios.watching
import watcher.clearing.bounds
import watcher.consumers
import watcher.epochs
import watcher.positions.spanner
import watcher.runners.watcher
from watcher.consumers import Consumers, Lease, Progress, State
from watcher.epochs import Epochs
from watcher.positions import SpannerPositions
from watcher.runners.delivery import Delivering


@dataclass(frozen=True)
class Mutation:
    """A fault, the part of issue 14 that it belongs to, and the scenario in which it shows."""

    name: str
    part: str
    scenario: str
    patch: Callable[[], AbstractContextManager[None]]


def nothing(*_arguments: object, **_options: object) -> None:
    """Checks nothing, writes nothing."""


def empty(*_arguments: object, **_options: object) -> dict[str, Any]:
    """Finds nothing."""
    return {}


@contextmanager
def replaced(owner: Any, name: str, value: object) -> Iterator[None]:
    """An attribute is another while it lasts."""
    before = owner.__dict__[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def everywhere(name: str, value: object) -> Iterator[None]:
    """A function of the product's is another in every module that has imported it."""
    with ExitStack() as stack:
        for module_name, module in list(sys.modules.items()):
            if module_name.startswith("watcher.") and name in vars(module):
                stack.enter_context(replaced(module, name, value))
        yield


@contextmanager
def blind_backfill() -> Iterator[None]:
    """Progress is written whoever has written other progress meanwhile, and nobody looks before a
    page."""
    with ExitStack() as stack:
        stack.enter_context(everywhere("check_owner", nothing))
        stack.enter_context(everywhere("check_backfills", nothing))
        stack.enter_context(replaced(watcher.runners.watcher.Watcher, "_check_lease", nothing))
        yield


@contextmanager
def lease_in_a_second_commit() -> Iterator[None]:
    """The owner is written first, the lease by a renewal."""
    take = Consumers.__dict__["_take"].fget
    acquire = Consumers.acquire
    until = " LeaseUntil = TIMESTAMP_ADD(CURRENT_TIMESTAMP(), INTERVAL @milliseconds MILLISECOND),"

    def acquire_and_renew(consumers: Consumers, *arguments: Any, **options: Any) -> Lease:
        lease = acquire(consumers, *arguments, **options)
        consumers.renew(lease, State.STARTING, Progress())
        return lease

    text = property(lambda self: take(self).replace(until, ""))
    with (
        replaced(Consumers, "_take", text),
        replaced(Consumers, "acquire", acquire_and_renew),
    ):
        yield


def take_and_erase() -> AbstractContextManager[None]:
    """Acquiring erases the operator's command."""
    take = Consumers.__dict__["_take"].fget
    text = property(
        lambda self: take(self).replace("Owner = @owner,", "Owner = @owner, Command = NULL,")
    )
    return replaced(Consumers, "_take", text)


@contextmanager
def frozen_schema() -> Iterator[None]:
    """The first schema that was seen is that of every window."""
    latest, real = Epochs.latest, Epochs.at

    def first(epochs: Epochs[Any], timestamp: int) -> Any:
        return next(iter(epochs._kept.values()), None) or real(epochs, timestamp)

    def first_too(epochs: Epochs[Any]) -> Any:
        epoch, _ = latest(epochs)
        return epoch, next(iter(epochs._kept.values()))

    with replaced(Epochs, "at", first), replaced(Epochs, "latest", first_too):
        yield


@contextmanager
def back_in_two_commits() -> Iterator[None]:
    """A query that starts earlier is taken away and registered anew; clearing knows of nobody who
    is not registered."""
    register = SpannerPositions.register

    def forget_and_register(positions: SpannerPositions, registration: Any, owner: Any) -> Any:
        kept = positions.of(registration.consumer)
        if any(kept.get(table, at) > at for table, at in registration.starts.items()):
            positions.forget(registration.consumer)
        return register(positions, registration, owner)

    with (
        replaced(SpannerPositions, "register", forget_and_register),
        replaced(watcher.clearing.bounds, "read_selections", empty),
    ):
        yield


def unregister_in_two(database: Any, positions_table: str, consumer: str) -> None:
    """Is it alive, and take it off: not in one transaction."""
    Consumers(database, watcher.positions.consumers_table(positions_table)).forget(consumer)
    SpannerPositions(database, positions_table).forget(consumer)


def unchecked_delivering(sink: Any, policy: Any, **options: Any) -> Delivering:
    """The lease is looked at before a batch only."""
    options.pop("check", None)
    return Delivering(sink, policy, **options)


@contextmanager
def cleared_unread() -> Iterator[None]:
    """A consumer that registers does not look how far was cleared, and clearing knows of nobody
    that has not registered: one of the two alone is enough where selections are stored."""
    with ExitStack() as stack:
        stack.enter_context(replaced(watcher.positions.spanner, "read_cleared", empty))
        stack.enter_context(replaced(watcher.clearing.bounds, "read_selections", empty))
        yield


@contextmanager
def cleared_unsaid() -> Iterator[None]:
    """As ``cleared_unread``, because clearing does not say it."""
    with ExitStack() as stack:
        stack.enter_context(replaced(watcher.clearing.bounds, "write_cleared", nothing))
        stack.enter_context(replaced(watcher.clearing.bounds, "read_selections", empty))
        yield


MUTATIONS = (
    Mutation(
        "registration does not read cleared-to",
        "1",
        "backfill",
        cleared_unread,
    ),
    Mutation(
        "a start at 'latest' does not read cleared-to",
        "1",
        "latest",
        cleared_unread,
    ),
    Mutation(
        "clearing does not say how far",
        "1",
        "backfill",
        cleared_unsaid,
    ),
    Mutation("backfill progress is a blind write", "1", "takeover-backfill", blind_backfill),
    Mutation(
        "the lease is looked at before a batch only",
        "1",
        "takeover-backfill",
        lambda: replaced(watcher.runners.watcher, "Delivering", unchecked_delivering),
    ),
    Mutation("columns are those of the start", "2", "add-column", frozen_schema),
    Mutation("index and shards are those of the start", "2", "reshard", frozen_schema),
    Mutation("the lease is in a second commit", "3.5", "standby", lease_in_a_second_commit),
    Mutation("acquiring erases the command", "3.5", "spark-stopped", take_and_erase),
    Mutation(
        "unregistering is two commits",
        "3.7",
        "operator",
        lambda: replaced(interleavings.scenarios.watching, "unregister", unregister_in_two),
    ),
    Mutation(
        "clearing does not know selections",
        "3.8",
        "new-table",
        lambda: replaced(watcher.clearing.bounds, "read_selections", empty),
    ),
    Mutation("a query starts earlier in two commits", "1", "spark-earlier", back_in_two_commits),
    Mutation("a query registers without cleared-to", "1", "spark-earliest", cleared_unread),
    Mutation("a query reads the shards of its start", "1", "spark-reshard", frozen_schema),
)
