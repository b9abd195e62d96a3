"""What a user chooses about watching a table: one validated model, for flags and files alike."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
SHARDS_MAX = 1_000


class Strategy(StrEnum):
    """How a table is made watchable (design: tracking strategies)."""

    AUTOMATIC = "automatic"
    PROCESSED = "processed"


class WatchOptions(BaseModel):
    """The wish for one table.

    ``shards`` is the number of distinct ShardId values, exactly. ``shard_key`` names the columns
    that are hashed; None is the primary key, so that a row keeps its shard for life. Names that are
    None are chosen.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    strategy: Strategy = Strategy.AUTOMATIC
    shards: Annotated[int, Field(ge=1, le=SHARDS_MAX)] = 16
    shard_key: tuple[Name, ...] | None = None
    timestamp_column: Name = "LastModified"
    shard_column: Name = "ShardId"
    processed_column: Name = "Processed"
    index: Name | None = None
    storing: tuple[Name, ...] = ()
    stored: bool = False
