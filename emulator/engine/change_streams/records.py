"""Data change records: the changes of a transaction as one stream shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from emulator.engine.change_streams.mods import ModType, RowChange
from emulator.engine.change_streams.partitions import StreamPartition
from emulator.engine.change_streams.values import Json, compact_json, to_json_value, type_to_json
from emulator.storage.change_streams import columns_tracked_by, key_columns
from emulator.values.requests import TransactionOrigin
from emulator.wrong import Wrong, is_wrong
from spanner_schema.model.schema import ChangeStream, Column, Table

WHOLE_ROW = {"NEW_ROW", "NEW_ROW_AND_OLD_VALUES"}
WITH_OLD = {"OLD_AND_NEW_VALUES", "NEW_ROW_AND_OLD_VALUES"}


@dataclass(slots=True)
class RecordDraft:
    """One record while it grows: changes of one kind and of the same columns."""

    partition: StreamPartition
    table: Table
    kind: ModType
    columns: tuple[Column, ...]
    mods: list[Json] = field(default_factory=list)

    def has_shape(self, table: Table, kind: ModType, columns: tuple[Column, ...]) -> bool:
        """Whether a change of this kind and of these columns belongs into this record."""
        same = self.columns is columns or self.columns == columns
        return self.kind is kind and self.table is table and same


def option(stream: ChangeStream, name: str, default: str) -> str:
    """An option of a stream, without quotes; NULL is the default."""
    text = dict(stream.options).get(name, default).strip("'\"")
    return default if text.casefold() == "null" else text


def is_set(stream: ChangeStream, name: str) -> bool:
    """Whether an option is true."""
    return option(stream, name, "false").casefold() == "true"


def leaves_out(stream: ChangeStream, origin: TransactionOrigin) -> bool:
    """Whether a stream records nothing of a transaction."""
    excluded = origin.excluded and is_set(stream, "allow_txn_exclusion")
    excluded = excluded and not is_wrong(Wrong.STREAM_EXCLUDES)
    return excluded or (origin.expiry and is_set(stream, "exclude_ttl_deletes"))


class TableView:
    """What a stream shows of a table; worked out once for all the changes of a transaction."""

    def __init__(self, stream: ChangeStream, table: Table) -> None:
        self.columns = columns_tracked_by(stream, table)
        self.keys = key_columns(table)
        self.positions = {column.name: position for position, column in enumerate(table.columns)}
        self._written: dict[frozenset[int], tuple[Column, ...]] = {}

    def written(self, positions: frozenset[int]) -> tuple[Column, ...]:
        """The columns among those that a statement has set."""
        columns = self._written.get(positions)
        if columns is None:
            columns = tuple(c for c in self.columns or () if self.positions[c.name] in positions)
            self._written[positions] = columns
        return columns

    def pick(self, image: tuple[Json, ...], columns: Sequence[Column], commit_text: str) -> str:
        """The values of some columns in an image, as JSON text."""
        positions = self.positions
        return compact_json(
            {c.name: to_json_value(image[positions[c.name]], c, commit_text) for c in columns}
        )


def build_records(
    stream: ChangeStream,
    find_partition: Callable[[RowChange], StreamPartition],
    mods: Iterable[RowChange],
    commit_text: str,
) -> list[RecordDraft]:
    """The records of a transaction; neighbours of the same shape share one."""
    capture = option(stream, "value_capture_type", "OLD_AND_NEW_VALUES")
    excluded = {kind for kind in ModType if is_set(stream, f"exclude_{kind.value.casefold()}")}
    views: dict[str, TableView] = {}
    records: list[RecordDraft] = []
    last: dict[int, RecordDraft] = {}
    for mod in mods:
        view = views.get(mod.table.name)
        if view is None:
            view = views[mod.table.name] = TableView(stream, mod.table)
        columns = view.columns
        if columns is None or mod.kind in excluded:
            continue
        written = view.written(mod.written)
        if mod.kind is ModType.UPDATE and not written:
            continue
        whole = capture in WHOLE_ROW and not is_wrong(Wrong.STREAM_NEW_ROW)
        recorded = written if mod.kind is ModType.UPDATE and not whole else columns
        partition = find_partition(mod)
        record = last.get(partition.number)
        if record is None or not record.has_shape(mod.table, mod.kind, recorded):
            record = RecordDraft(partition, mod.table, mod.kind, recorded)
            last[partition.number] = record
            records.append(record)
        record.mods.append(mod_values(mod, view, recorded, written, capture, commit_text))
    return records


def mod_values(
    mod: RowChange,
    view: TableView,
    recorded: Sequence[Column],
    written: Sequence[Column],
    capture: str,
    commit_text: str,
) -> Json:
    """keys, new_values and old_values, each as JSON text."""
    keys = view.pick(mod.new or mod.old, view.keys, commit_text)
    deleted = mod.kind is ModType.DELETE
    new = "{}" if deleted else view.pick(mod.new, recorded, commit_text)
    keeps_old = capture in WITH_OLD and mod.kind is not ModType.INSERT
    keeps_old = keeps_old and not is_wrong(Wrong.STREAM_OLD_VALUES)
    return [keys, new, view.pick(mod.old, written, commit_text) if keeps_old else "{}"]


def record_rows(
    records: Sequence[RecordDraft],
    stream: ChangeStream,
    micros: int,
    commit_text: str,
    origin: TransactionOrigin,
) -> Iterable[tuple[int, int, int, str]]:
    """Rows of ``$records``: partition, commit timestamp, sequence, the record's fields."""
    numbers = [record.partition.number for record in records]
    final = {number: sequence for sequence, number in enumerate(numbers)}
    capture = option(stream, "value_capture_type", "OLD_AND_NEW_VALUES")
    for sequence, record in enumerate(records):
        fields: list[Json] = [
            commit_text,
            f"{sequence:08}",
            "1" if is_wrong(Wrong.STREAM_TRANSACTION_ID) else str(micros),
            final[record.partition.number] == sequence,
            record.table.name,
            column_types(record),
            record.mods,
            record.kind.value,
            capture,
            len(records),
            len(final),
            origin.tag,
            origin.expiry and not is_wrong(Wrong.STREAM_MARKS_TTL),
        ]
        yield record.partition.number, micros, sequence, compact_json(fields)


def column_types(record: RecordDraft) -> Json:
    """Name, type, whether it is in the key, position in the table; in the table's order."""
    keys = {column.name for column in key_columns(record.table)}
    included = keys | {column.name for column in record.columns}
    return [
        [column.name, compact_json(type_to_json(column.type)), column.name in keys, ordinal]
        for ordinal, column in enumerate(record.table.columns, start=1)
        if column.name in included
    ]
