"""What steps cost Spanner, and what applications may notice of them, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ddl.rules.limits import FIXED_BYTES_MAX, KEY_BYTES_MAX, count_key_bytes
from spanner_schema.model.schema import Dialect, Schema
from spanner_schema.model.steps import (
    AddColumn,
    AlterIndexStoring,
    CreateIndex,
    SetColumnOptions,
    SetOnUpdate,
    Step,
)

# assumes: read-after-dml
PENDING_NOTE = (
    "an application that reads a table in the transaction in which it has written it by DML may be"
    " refused: Spanner refuses such reads after PENDING_COMMIT_TIMESTAMP(), and does not document"
    " whether DEFAULT and ON UPDATE count; test it with 'spanner-watcher emulator"
    " --strict-pending-timestamps', or use --strategy change-stream, which adds no column"
)
# assumes: on-update-key-only
KEY_NOTE = (
    "a write that names only key columns of a row that exists does not set {}: no poll sees it"
)


def describe_effects(steps: Iterable[Step], dialect: Dialect) -> Iterator[str]:
    """What applications may notice of the steps, a sentence each."""
    made = list(steps)
    automatic = dict.fromkeys(
        step.column for step in made if isinstance(step, SetOnUpdate) and step.expression
    )
    if automatic:
        yield PENDING_NOTE
        yield KEY_NOTE.format(", ".join(automatic))
    shown = [step.column for step in made if isinstance(step, AddColumn) and not step.column.hidden]
    if shown:
        names = ", ".join(dict.fromkeys(column.name for column in shown))
        hide = "; --hidden leaves them out" if dialect is Dialect.GOOGLESQL else ""
        yield (
            f"SELECT * of applications will have the new columns ({names}); Spanner refuses it in a"
            f" transaction that has written the table by DML, and THEN RETURN * in any{hide}"
        )


def describe_cost(step: Step, backfill: bool, schema: Schema) -> str:
    """What a statement costs Spanner, in words."""
    if isinstance(step, CreateIndex):
        filters = step.index.null_filtered or step.index.where_not_null
        entries = "rows whose shard and timestamp are not NULL" if filters else ""
        return (
            f"reads the table once in the background, writes an entry for {entries or 'each row'};"
            f" afterwards one more write for each change of a row{describe_key(step, schema)}"
        )
    if isinstance(step, AlterIndexStoring):
        return "reads the table once in the background, to write the column into each entry"
    if isinstance(step, SetColumnOptions):
        return "reads the column of every row once, to check that no value lies in the future"
    return "writes every row of the table once in the background" if backfill else "metadata only"


def describe_key(step: CreateIndex, schema: Schema) -> str:
    """What the limit of an index's key means for rows with long keys, in words; nothing where the
    lengths of the columns rule that out."""
    table = schema.table(step.index.table)
    own_bytes = FIXED_BYTES_MAX * len(step.index.parts)
    key_bytes = count_key_bytes(table) if table is not None else None
    if key_bytes is not None and key_bytes + own_bytes <= KEY_BYTES_MAX:
        return ""
    return (
        f"; a row whose key and timestamp have more than {KEY_BYTES_MAX:,} bytes together can no"
        " longer be written"
    )
