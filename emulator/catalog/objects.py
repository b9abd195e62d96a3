"""The rows of INFORMATION_SCHEMA about views, sequences, placements, statistics and change
streams."""

from __future__ import annotations

from collections.abc import Iterator

from emulator.values.system_tables import Row
from spanner_schema.model.names import split_name
from spanner_schema.model.schema import Schema
from spanner_schema.syntax import placements, sequences, views
from spanner_schema.syntax.locality_groups import list_locality_groups


def view_rows(schema: Schema) -> Iterator[Row]:
    """The database's own views."""
    for item in views.list_views(schema):
        read = views.read_view(item.text, schema.dialect)
        yield "", *split_name(item.name), read.query, read.security


def sequence_rows(schema: Schema) -> Iterator[Row]:
    """The sequences; those of IDENTITY columns are not listed."""
    for item in schema.verbatim:
        if item.kind == sequences.KIND:
            yield "", *split_name(item.name), "INT64"


def sequence_option_rows(schema: Schema) -> Iterator[Row]:
    """The options that are set for each sequence."""
    for item in schema.verbatim:
        if item.kind == sequences.KIND:
            for name, value in sequences.read_sequence(item.text, schema.dialect).options().items():
                kind = "STRING" if name == "sequence_kind" else "INT64"
                yield "", *split_name(item.name), name, kind, value.strip("'")


def placement_rows(schema: Schema) -> Iterator[Row]:
    """The placements: the one that every database has, and those that were created."""
    yield placements.DEFAULT, 1
    for placement in placements.read_placements(schema):
        yield placement.name, 0


def placement_option_rows(schema: Schema) -> Iterator[Row]:
    """The options that are set for each placement."""
    for placement in placements.read_placements(schema):
        for name, value in placement.options:
            yield placement.name, name, "STRING(MAX)", placements.strip_quotes(value)


def locality_group_option_rows(schema: Schema) -> Iterator[Row]:
    """The options that are set for each locality group."""
    for group in list_locality_groups(schema):
        for name, value in group.options:
            yield group.name, name.upper(), value.strip("'\"")


def statistics_rows(schema: Schema) -> Iterator[Row]:
    """The packages of optimizer statistics."""
    for name, collected in schema.statistics.items():
        yield "", "", name, int(collected)


def change_streams(schema: Schema) -> Iterator[Row]:
    """The change streams."""
    for stream in schema.change_streams:
        yield "", *split_name(stream.name), int(stream.for_all)


def change_stream_options(schema: Schema) -> Iterator[Row]:
    """Their options."""
    for stream in schema.change_streams:
        for name, value in stream.options:
            flag = value.upper() in ("TRUE", "FALSE")
            if value.upper() != "NULL":
                kind = "BOOL" if flag else "STRING"
                yield "", *split_name(stream.name), name, kind, value.strip("'\"")


def change_stream_tables(schema: Schema) -> Iterator[Row]:
    """The tables that they watch by name."""
    for stream in schema.change_streams:
        for watched in stream.watches:
            whole = int(watched.columns is None)
            yield "", *split_name(stream.name), "", *split_name(watched.table), whole


def change_stream_columns(schema: Schema) -> Iterator[Row]:
    """The columns that they watch by name."""
    for stream in schema.change_streams:
        for watched in stream.watches:
            for column in watched.columns or ():
                yield "", *split_name(stream.name), "", *split_name(watched.table), column
