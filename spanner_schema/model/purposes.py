"""What a database role may be for."""

from __future__ import annotations

from enum import StrEnum


class Purpose(StrEnum):
    """Work of the product, as ``ddl grants --for`` names it."""

    WATCH = "watch"
    REPLICATE = "replicate"
    VERIFY = "verify"
    CLEAR = "clear"
    STATUS = "status"
    CONTROL = "control"
