"""What a change stream captures, from the schema."""

from __future__ import annotations

from spanner_schema.model.schema import ChangeStream, Schema, Table


def list_streamed_columns(schema: Schema, name: str, table: Table) -> tuple[str, ...]:
    """The columns of a table whose values a stream captures.

    Spanner: generated columns are not watched unless they are part of the key.
    """
    # assumes: stream-new-row
    # assumes: stream-hidden-columns
    # assumes: stream-generated-columns
    stream = schema.change_stream(name)
    key = {part.column.casefold() for part in table.primary_key}
    named = {
        column.casefold()
        for each in (stream.watches if stream else ())
        if each.table.casefold() == table.name.casefold() and each.columns is not None
        for column in each.columns
    }
    listed = any(
        each.table.casefold() == table.name.casefold() and each.columns is not None
        for each in (stream.watches if stream else ())
    )
    return tuple(
        column.name
        for column in table.columns
        if column.name.casefold() in key
        or (not column.generated and (not listed or column.name.casefold() in named))
    )


def read_option(stream: ChangeStream, name: str, default: str) -> str:
    """An option of a stream, without quotes; NULL is the default."""
    text = dict(stream.options).get(name, default).strip("'\"")
    return default if text.upper() == "NULL" else text
