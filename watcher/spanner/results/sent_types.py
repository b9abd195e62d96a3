"""The types of a result's columns, compared with those that the schema has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from google.cloud.spanner_v1 import ResultSetMetadata, TypeAnnotationCode
from google.cloud.spanner_v1 import TypeCode as TypeCodePb

from spanner_schema.model.column_types import Type, TypeCode
from watcher.model.errors import SchemaChangedError
from watcher.model.value_types import find_code
from watcher.spanner.results.wire import ResultPart


def check_types(
    results: Iterable[ResultPart], names: Sequence[str], types: Sequence[Type]
) -> Iterator[ResultPart]:
    """The same messages. Raises SchemaChangedError when the server sends other types."""
    for part in results:
        if part.metadata:
            fields = ResultSetMetadata.pb().FromString(part.metadata).row_type.fields
            sent = [name_sent_type(field.type_) for field in fields]
            expected = [name_type(type_) for type_ in types]
            if not all(map(is_expected, sent, expected)) or len(sent) != len(expected):
                raise SchemaChangedError(describe_changes(names, expected, sent))
        yield part


def name_sent_type(type_: Any) -> str:
    """The name of a type of the API, as ARRAY<INT64>."""
    if type_.code == TypeCodePb.ARRAY:
        return f"ARRAY<{name_sent_type(type_.array_element_type)}>"
    annotation = TypeAnnotationCode(type_.type_annotation).name
    return find_code(TypeCodePb(type_.code).name, annotation).value


def is_expected(sent: str, expected: str) -> bool:
    """A numeric may be read as text: that is what is sent."""
    return expected in (sent, sent.replace("PG_NUMERIC", "STRING"))


def name_type(type_: Type) -> str:
    """The name of a type of a schema."""
    if type_.code is TypeCode.ARRAY and type_.element is not None:
        return f"ARRAY<{name_type(type_.element)}>"
    return type_.code.value


def describe_changes(names: Sequence[str], expected: Sequence[str], sent: Sequence[str]) -> str:
    """Which columns have other types than before."""
    differing = [
        f"{name} was {before} and is {now}"
        for name, before, now in zip(names, expected, sent, strict=False)
        if before != now
    ]
    if not differing:
        return f"{len(expected)} columns were requested, {len(sent)} came"
    return f"the schema has changed: column {'; column '.join(differing)}"
