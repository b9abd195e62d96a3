"""Mutations from their proto: the decoders of a table's columns are worked out once a schema."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.engine.refusals import unknown_column, unknown_table
from emulator.errors import (
    SpannerError,
    failed_precondition,
    invalid_argument,
    unimplemented,
)
from emulator.unsupported import queue_mutation
from emulator.values.protos import types_of
from emulator.values.requests import KeyDelete, KeyRange, Mutation, MutationKind, RowWrite, Stored
from emulator.wire.keys import key_decoders, read_key_set
from emulator.wire.messages import Message
from emulator.wire.values import Decoder, decoder
from spanner_schema.model.schema import Schema, Table

KINDS = {
    "insert": MutationKind.INSERT,
    "update": MutationKind.UPDATE,
    "insert_or_update": MutationKind.INSERT_OR_UPDATE,
    "replace": MutationKind.REPLACE,
}
SHAPES_MAX = 10_000
Shape = tuple[str, tuple[str, ...]]
"""A table and columns, as mutations name them."""


class MutationReader:
    """Reads the mutations of one database."""

    def __init__(self) -> None:
        self._schema: Schema | None = None
        self._decoders: dict[Shape, tuple[str, list[Decoder]]] = {}

    def read(self, schema: Schema, protos: Sequence[Message]) -> list[Mutation]:
        """The mutations of a commit, in order. Raises SpannerError for values that do not fit.

        Neighbours that write the same columns in the same way are one mutation of many rows.
        """
        if schema is not self._schema or len(self._decoders) > SHAPES_MAX:
            self._schema, self._decoders = schema, {}
        mutations: list[Mutation] = []
        last: tuple[MutationKind, str, tuple[str, ...]] | None = None
        rows: list[tuple[Stored, ...]] = []
        for proto in protos:
            mutation = self._mutation(schema, self._decoders, proto)
            if not isinstance(mutation, RowWrite):
                last = None
                mutations.append(mutation)
                continue
            shape = (mutation.kind, mutation.table, mutation.columns)
            if shape == last:
                rows.extend(mutation.rows)
                continue
            last, rows = shape, list(mutation.rows)
            mutations.append(RowWrite(*shape, rows))
        return mutations

    def _mutation(
        self,
        schema: Schema,
        decoders_by_shape: dict[Shape, tuple[str, list[Decoder]]],
        proto: Message,
    ) -> Mutation:
        operation = proto.WhichOneof("operation")
        kind = KINDS.get(operation)
        if kind is None:
            return read_delete(schema, proto, operation)
        write = getattr(proto, operation)
        shape = (write.table, tuple(write.columns))
        known = decoders_by_shape.get(shape)
        if known is None:
            table = find_table(schema, write.table)
            known = decoders_by_shape[shape] = table.name, column_decoders(schema, table, shape[1])
        name, decoders = known
        rows = [decode_row(decoders, values.values, write) for values in write.values]
        return RowWrite(kind, name, shape[1], rows)


def decode_row(
    decoders: list[Decoder], values: Sequence[Message], write: Message
) -> tuple[Stored, ...]:
    """One row in storage form."""
    if len(values) != len(decoders):
        raise invalid_argument(
            f"Mutation of table {write.table} names {len(decoders)} columns, but a row has "
            f"{len(values)} values."
        )
    try:
        return tuple([decode(value) for decode, value in zip(decoders, values, strict=True)])
    except ValueError:
        raise wrong_value(decoders, values, write) from None


def wrong_value(decoders: list[Decoder], values: Sequence[Message], write: Message) -> SpannerError:
    """Says which value it was."""
    for name, decode, value in zip(write.columns, decoders, values, strict=True):
        try:
            decode(value)
        except ValueError as error:
            return failed_precondition(
                f"Invalid value for column {name} in table {write.table}: {error}"
            )
    return failed_precondition(f"Invalid value in a row of table {write.table}.")


def find_table(schema: Schema, name: str) -> Table:
    """The table that a mutation names, maybe by its synonym."""
    table = schema.find_table(name)
    if table is None:
        raise unknown_table(name)
    return table


def column_decoders(schema: Schema, table: Table, names: tuple[str, ...]) -> list[Decoder]:
    """The decoders of some columns of a table."""
    decoders: list[Decoder] = []
    for name in names:
        column = table.column(name)
        if column is None:
            raise unknown_column(table.name, name)
        decoders.append(decoder(column.type, types_of(schema)))
    return decoders


def read_delete(schema: Schema, proto: Message, operation: str | None) -> KeyDelete:
    """A delete by key set."""
    if operation is None:
        raise invalid_argument("A mutation has no operation.")
    if operation != "delete":
        raise queue_mutation()
    types = key_decoders(schema, proto.delete.table)
    keys = read_key_set(types, proto.delete.key_set)
    for each in keys.ranges:
        refuse_wide(each)
    return KeyDelete(find_table(schema, proto.delete.table).name, keys)


def refuse_wide(keys: KeyRange) -> None:
    """Spanner deletes ranges whose bounds differ in their last part only."""
    common = 0
    for start, end in zip(keys.start, keys.end, strict=False):
        if start != end:
            break
        common += 1
    if max(len(keys.start), len(keys.end)) - common > 1:
        raise unimplemented(
            f"A delete of the range from {list(keys.start)} to {list(keys.end)}, whose bounds "
            "differ in more than the last part of the key,"
        )
