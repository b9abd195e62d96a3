"""The instance that delivers: a consumer, and the token of its lease."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Instance:
    """Who delivers: a consumer, and the token of its lease (None: it has no lease).

    ``check`` raises when this instance must not deliver any more.
    """

    consumer: str
    owner: str | None
    check: Callable[[], None]
