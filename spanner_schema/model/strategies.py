"""How a table is made watchable: the choices, without the model that validates them."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

ShardKind = Literal["computed", "fixed", "not-null", "time", "none"]
"""What the shard of a table is: a generated column, or one that applications write."""


class Strategy(StrEnum):
    """How a table is made watchable."""

    AUTOMATIC = "automatic"
    PROCESSED = "processed"
    MANUAL = "manual"
    CHANGE_SET = "change-set"
    CHANGE_STREAM = "change-stream"


class Modulo(StrEnum):
    """How the hash becomes a shard.

    ``positive`` has exactly N values, 0 to N - 1. ``signed`` is MOD(hash, N) alone: MOD keeps the
    sign, which gives 2N - 1 values.
    """

    POSITIVE = "positive"
    SIGNED = "signed"
