"""Repairs a replica in the place of its replicator: ``spanner-watcher verify --repair``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from watcher.consumers.holding import RENEWALS_PER_LEASE, Holding
from watcher.consumers.holding import Report as HolderReport
from watcher.consumers.leases import LEASE_SECONDS, Consumers, not_found
from watcher.consumers.states import ConsumerStatus, State
from watcher.model.errors import ReplicaError
from watcher.process.failpoints import failpoint
from watcher.replica.copies import OpenCopy
from watcher.replica.cuts.cut import Cut
from watcher.replica.cuts.manifest import Manifest
from watcher.replica.cuts.owner import Owner
from watcher.replica.verification.repairs import RepairOptions, repair
from watcher.replica.verification.report import Report
from watcher.runners.schedule import Schedule
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import connect
from watcher.spanner.failures import MAY_GO_AWAY, classify_error
from watcher.spanner.outages import Outages
from watcher.spanner.queries import QueryClient

ASKS_PER_LEASE = 20
"""How often a name is asked for while the lease of an instance that was killed may run out."""


@dataclass(frozen=True, slots=True)
class LeasePlace:
    """The database and the table of positions beside which a consumer's lease is stored."""

    address: DatabaseAddress
    positions_table: str


def repair_replica(
    queries: QueryClient,
    copies: OpenCopy,
    manifest: Manifest,
    options: RepairOptions,
    lease: LeasePlace,
) -> Report:
    """Repairs the copies of a replica at its last cut, and writes the cut anew. With ``dry_run``
    nothing is changed, and no lease is taken. Raises as ``repair``, LeaseHeldError while the
    replicator runs, ConsumerNotFoundError."""
    if options.dry_run:
        return repair(queries, copies, find_last(manifest), options, lambda: None)[0]
    with hold_consumer(lease, find_last(manifest).consumer) as check_lease:
        # A replicator may have written another one before the lease was free.
        cut = find_last(manifest)
        owner = Owner.of_cut(cut)
        manifest.claim(owner)

        def check() -> None:
            check_lease()
            manifest.owner.check(owner)

        report, repaired = repair(queries, copies, cut, options, check)
        failpoint("after-repair-tables")
        check()
        for table in report.tables:
            if table.equal:
                manifest.note_verified(cut, table.table)
        if repaired != cut:
            manifest.write(repaired)
        failpoint("after-repair-cut")
    return report


def find_last(manifest: Manifest) -> Cut:
    """The last cut, if a comparison can judge it. Raises ReplicaError."""
    manifest.refresh()
    last = manifest.read_last()
    if last is None:
        raise ReplicaError("there is no cut yet: let 'replicate' finish a window")
    if not last.comparable:
        raise ReplicaError(
            f"the copies cannot be repaired at the last cut: {last.explain()}; let 'replicate' go"
            " on until its cuts are exact, or not exact for what others have written alone"
        )
    return last


@contextmanager
def hold_consumer(place: LeasePlace, consumer: str) -> Iterator[Callable[[], None]]:
    """Holds a consumer's lease; what it gives raises when the lease is lost. Raises
    LeaseHeldError while an instance runs, ConsumerNotFoundError for a name that nobody has."""
    consumers = Consumers(connect(place.address), place.positions_table)
    consumers.create()
    status = find_status(consumers, consumer)
    holding = Holding(consumer, LEASE_SECONDS, lambda: consumers, Outages(place.address.path))
    holding.acquire(threading.Event().wait, LEASE_SECONDS / ASKS_PER_LEASE)
    schedule = Schedule()

    def renew() -> None:
        try:
            holding.renew(HolderReport(State.RUNNING, status.progress))
        except Exception as error:
            if classify_error(error) not in MAY_GO_AWAY:
                raise
            holding.report_failed_renewal(error)

    def check() -> None:
        if schedule.pause(0):  # a renewal has failed
            schedule.wait()
        holding.check()

    schedule.every(LEASE_SECONDS / RENEWALS_PER_LEASE, "lease", renew)
    schedule.start()
    try:
        yield check
    finally:
        schedule.end()
        holding.release(HolderReport(State.STOPPED, status.progress), "verify --repair has ended")


def find_status(consumers: Consumers, name: str) -> ConsumerStatus:
    """A consumer as it is stored. Raises ConsumerNotFoundError."""
    known = {each.consumer: each for each in consumers.list_all()}
    if name not in known:
        raise not_found(name, known)
    return known[name]
