"""The options of watching a table: one validated model for flags and files."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from spanner_schema.model.schema import Dialect
from spanner_schema.model.strategies import Modulo, ShardKind, Strategy

NAME = r"[A-Za-z_][A-Za-z0-9_]{0,127}"
Name = Annotated[str, StringConstraints(pattern=rf"^{NAME}$")]
"""The name of something that may be new."""
ObjectName = Annotated[str, StringConstraints(pattern=rf"^({NAME}\.)?{NAME}$")]
"""The same of a table or an index, which may be in a named schema."""
ColumnName = Annotated[str, StringConstraints(min_length=1, max_length=128)]
"""The name of an existing column, which the PostgreSQL dialect allows to have any characters."""
SHARDS_MAX = 1_000


class WatchOptions(BaseModel):
    """The options of one table. The text below a field is its line in the reference."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    strategy: Strategy = Strategy.AUTOMATIC
    """How the table is made watchable."""
    take_over: tuple[ColumnName, ...] = ()
    """Existing columns whose values may be overwritten and cleared; with the strategy
    ``change-set``, the table of change sets."""
    shard: ShardKind = "computed"
    """``computed``: a generated column. The others take ``shard_column``, which applications write;
    ``none``: no shard. As ``[table.NAME] shard`` of a watcher."""
    shards: Annotated[int, Field(ge=1, le=SHARDS_MAX)] = 16
    """The exact number of distinct values of the shard."""
    shard_key: tuple[ColumnName, ...] | None = None
    """The columns to hash; without it the primary key, with which a row never changes its shard."""
    timestamp_column: Name = "LastModified"
    """The name of the commit-timestamp column."""
    shard_column: Name = "ShardId"
    """The name of the computed shard column."""
    processed_column: Name = "Processed"
    """The name of the column that clearing sets, with the strategy ``processed``."""
    index: ObjectName | None = None
    """The name of the index; without it, one is chosen. An index is in the schema of its table."""
    storing: tuple[ColumnName, ...] = ()
    """Columns that the index stores, to avoid a join with the table."""
    stored: bool = False
    """Store the shard in the table, too; this writes every row once."""
    hidden: bool = False
    """Make the columns that are added ``HIDDEN``, which ``SELECT *`` leaves out (GoogleSQL)."""
    modulo: Modulo = Modulo.POSITIVE
    """``positive`` has exactly N shards; ``signed`` keeps the sign, which gives 2N - 1."""
    change_sets: ObjectName = "CHANGE_SETS"
    """The name of the table of change sets, with the strategy ``change-set``."""
    change_set_column: Name = "ChangeSetId"
    """The name of the column with the id of a change set."""
    change_stream: Name = "SpannerWatcherStream"
    """The name of the change stream, with the strategy ``change-stream``."""

    def for_dialect(self, dialect: Dialect) -> WatchOptions:
        """The options with PostgreSQL's lower-case names, in that dialect, where none were set."""
        if dialect is not Dialect.POSTGRESQL:
            return self
        set_names = self.model_fields_set
        names = {
            "timestamp_column": "last_modified",
            "shard_column": "shard_id",
            "processed_column": "processed",
            "change_sets": "change_sets",
            "change_set_column": "change_set_id",
            "change_stream": "spanner_watcher_stream",
        }
        new = {name: value for name, value in names.items() if name not in set_names}
        return WatchOptions.model_construct(set_names, **(dict(self) | new))


class WatchFile(BaseModel):
    """A TOML file: the tables, the options of all of them (``defaults``), and those of single ones.

    ``[table.NAME]`` replaces single values of ``[defaults]``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tables: Annotated[tuple[str, ...], Field(min_length=1)] = ("*",)
    """Names or globs of the tables that are meant."""
    exclude: tuple[str, ...] = ()
    """Names or globs that ``tables`` leaves out."""
    defaults: dict[str, object] = {}
    """The options of all tables."""
    table: dict[str, dict[str, object]] = {}
    """The options of single tables, which replace those of ``[defaults]``."""

    def options_for(self, table: str) -> WatchOptions:
        """The options of one table. Raises pydantic's ValidationError."""
        own = next((v for k, v in self.table.items() if k.casefold() == table.casefold()), {})
        return WatchOptions.model_validate({**self.defaults, **own})
