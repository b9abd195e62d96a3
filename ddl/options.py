"""The options of watching a table: one validated model for flags and files."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from ddl.strategies import Modulo, Strategy

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
SHARDS_MAX = 1_000


class WatchOptions(BaseModel):
    """The options of one table.

    ``shards`` is the exact number of distinct ShardId values. ``shard_key`` names the columns to
    hash; None is the primary key, with which a row never changes its shard. Without ``index`` a
    name is chosen.
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
    modulo: Modulo = Modulo.POSITIVE
    change_sets: Name = "CHANGE_SETS"
    change_set_column: Name = "ChangeSetId"
    change_stream: Name = "SpannerWatcherStream"

    def use_postgresql_names(self) -> WatchOptions:
        """The options with PostgreSQL's lower-case names for those that were not set."""
        set_names = self.model_fields_set
        names = {
            "timestamp_column": "last_modified",
            "shard_column": "shard_id",
            "processed_column": "processed",
            "change_sets": "change_sets",
            "change_set_column": "change_set_id",
            "change_stream": "spanner_watcher_stream",
        }
        return self.model_copy(update={k: v for k, v in names.items() if k not in set_names})


class WatchFile(BaseModel):
    """A TOML file: the tables, the options of all of them (``defaults``), and those of single ones.

    ``[table.NAME]`` replaces single values of ``[defaults]``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tables: Annotated[tuple[str, ...], Field(min_length=1)] = ("*",)
    exclude: tuple[str, ...] = ()
    defaults: dict[str, object] = {}
    table: dict[str, dict[str, object]] = {}

    def options_for(self, table: str) -> WatchOptions:
        """The options of one table. Raises pydantic's ValidationError."""
        own = next((v for k, v in self.table.items() if k.casefold() == table.casefold()), {})
        return WatchOptions.model_validate({**self.defaults, **own})
