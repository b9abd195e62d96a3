"""Takes a consumer's name, and waits for the lease of an instance that has died."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from watcher.consumers.leases import Consumers, Lease
from watcher.model.errors import LeaseHeldError


@dataclass(frozen=True, slots=True)
class Claim:
    """What an instance asks for: a consumer's name for so many seconds, under its own token
    ``owner``."""

    consumer: str
    seconds: float
    owner: str


def acquire_lease(
    consumers: Consumers,
    claim: Claim,
    pause: Callable[[float], bool],
    interval_seconds: float,
    standby: bool = False,
) -> Lease:
    """Asks for a name every ``interval_seconds``, until the lease of its holder has run out.

    ``pause`` waits so many seconds and says whether to give up. Raises LeaseHeldError when the
    holder renews its lease, which proves that it is alive, unless on ``standby``.
    """
    first_renewal: int | None = None
    while True:
        try:
            return consumers.acquire(claim.consumer, claim.seconds, claim.owner)
        except LeaseHeldError:
            status = consumers.status(claim.consumer)
            renewal = status.updated_at if status is not None else None
            first_renewal = renewal if first_renewal is None else first_renewal
            alive = renewal != first_renewal
            if (alive and not standby) or pause(interval_seconds):
                raise
