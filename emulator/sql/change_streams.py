"""The read functions of change streams: ``SELECT ChangeRecord FROM READ_<stream>(...)``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ddl.schema import Schema, StructField, Type, TypeCode
from emulator.errors import SpannerError, invalid_argument, unimplemented
from emulator.values.types import BOOL, INT64, STRING

ARGUMENTS = (
    "start_timestamp",
    "end_timestamp",
    "partition_token",
    "heartbeat_milliseconds",
    "read_options",
)
NAMED = re.compile(r"\bREAD_(\w+)\s*\(", re.IGNORECASE)
WHOLE = re.compile(
    r"\s*SELECT\s+(?:(?P<qualifier>\w+)\s*\.\s*)?ChangeRecord\s+FROM\s+`?READ_\w+`?\s*"
    r"\((?P<arguments>.*)\)\s*(?:AS\s+)?(?P<alias>\w+)?\s*;?\s*\Z",
    re.IGNORECASE | re.DOTALL,
)
ARGUMENT = re.compile(
    r"\s*(?:(?P<name>\w+)\s*=>\s*)?(?:@(?P<parameter>\w+)|(?P<null>NULL)|(?P<number>[+-]?\d+)"
    r"|(?:TIMESTAMP\s*)?(?P<quote>[\"'])(?P<text>[^\"'\\]*)(?P=quote))\s*(?P<end>,|\Z)",
    re.IGNORECASE,
)
TIMESTAMP = Type(TypeCode.TIMESTAMP)
JSON = Type(TypeCode.JSON)


def array_of_structs(**fields: Type) -> Type:
    """ARRAY<STRUCT<...>>, the form of everything in a change record."""
    members = tuple(StructField(name, type_) for name, type_ in fields.items())
    return Type(TypeCode.ARRAY, element=Type(TypeCode.STRUCT, fields=members))


CHANGE_RECORD = array_of_structs(
    data_change_record=array_of_structs(
        commit_timestamp=TIMESTAMP,
        record_sequence=STRING,
        server_transaction_id=STRING,
        is_last_record_in_transaction_in_partition=BOOL,
        table_name=STRING,
        column_types=array_of_structs(
            name=STRING, type=JSON, is_primary_key=BOOL, ordinal_position=INT64
        ),
        mods=array_of_structs(keys=JSON, new_values=JSON, old_values=JSON),
        mod_type=STRING,
        value_capture_type=STRING,
        number_of_records_in_transaction=INT64,
        number_of_partitions_in_transaction=INT64,
        transaction_tag=STRING,
        is_system_transaction=BOOL,
    ),
    heartbeat_record=array_of_structs(timestamp=TIMESTAMP),
    child_partitions_record=array_of_structs(
        start_timestamp=TIMESTAMP,
        record_sequence=STRING,
        child_partitions=array_of_structs(
            token=STRING, parent_partition_tokens=Type(TypeCode.ARRAY, element=STRING)
        ),
    ),
)
"""The type of the one column of a read function."""


@dataclass(frozen=True, slots=True)
class ReadArgument:
    """The value of an argument: a parameter, or a text (None is NULL)."""

    parameter: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class ReadCall:
    """A query of a change stream."""

    stream: str
    arguments: Mapping[str, ReadArgument]


def read_call(sql: str, schema: Schema) -> ReadCall | None:
    """The call that a query consists of; None when it calls no read function.

    Raises UNIMPLEMENTED when the call is a part of something else, as Spanner does.
    """
    if not schema.change_streams:
        return None
    named = NAMED.search(sql.replace("`", ""))
    stream = schema.change_stream(named[1]) if named is not None else None
    if named is None or stream is None:
        return None
    match = WHOLE.match(sql)
    if match is None or (match["qualifier"] and match["qualifier"] != match["alias"]):
        raise unimplemented(
            "a change stream TVF combined with any other SQL (records are read using "
            f"`SELECT ChangeRecord FROM READ_{stream.name}(<args>)`)"
        )
    return ReadCall(stream.name, parse_arguments(match["arguments"]))


def parse_arguments(text: str) -> dict[str, ReadArgument]:
    """Arguments by position or by name."""
    arguments: dict[str, ReadArgument] = {}
    place = 0
    while place < len(text):
        match = ARGUMENT.match(text, place)
        if match is None:
            raise wrong_call(f"cannot read its arguments at '{text[place:].strip()[:40]}'")
        name = (match["name"] or ARGUMENTS[min(len(arguments), len(ARGUMENTS) - 1)]).casefold()
        if name not in ARGUMENTS or name in arguments:
            raise wrong_call(f"argument {name} is unknown or given twice")
        value = match["text"] if match["quote"] else match["number"]
        arguments[name] = ReadArgument(match["parameter"], value)
        place = match.end()
    missing = [n for n in ("start_timestamp", "heartbeat_milliseconds") if n not in arguments]
    if missing:
        raise wrong_call(f"argument {missing[0]} is missing")
    return arguments


def wrong_call(why: str) -> SpannerError:
    """A call that does not fit the function."""
    return invalid_argument(f"No matching signature for the read function: {why}.")
