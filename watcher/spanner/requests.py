"""Statements, read timestamps and read options as messages of Spanner's API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from google.cloud.spanner_v1 import (
    DirectedReadOptions,
    ExecuteSqlRequest,
    ReadRequest,
    RequestOptions,
    TypeAnnotationCode,
)
from google.cloud.spanner_v1 import Type as TypePb
from google.cloud.spanner_v1 import TypeCode as TypeCodePb
from google.protobuf.struct_pb2 import Struct

from spanner_schema.model.column_types import Type
from watcher.model.value_types import ANNOTATIONS, UNANNOTATED
from watcher.spanner.dialects import SqlDialect
from watcher.spanner.read_options import DirectedRead, ReadOptions, Replica, write_tag
from watcher.spanner.sql import Statement
from watcher.spanner.timestamps import to_datetime

Request = ExecuteSqlRequest | ReadRequest


def build_read_only(read_timestamp_micros: int | None) -> dict[str, object]:
    """How a read-only transaction reads: at a timestamp, or strongly."""
    # assumes: exact-read-repeats
    if read_timestamp_micros is None:
        return {"return_read_timestamp": True, "strong": True}
    return {"return_read_timestamp": True, "read_timestamp": to_datetime(read_timestamp_micros)}


@dataclass(frozen=True, slots=True)
class SentStatement:
    """A statement as a dialect sends it."""

    sql: str
    params: Struct
    param_types: dict[str, TypePb]


def build_statement(statement: Statement, sql: SqlDialect) -> SentStatement:
    """The text, the values and the types of a statement."""
    text, names = sql.place_parameters(statement.sql)
    values = Struct()
    for name, sent in names.items():
        values[sent] = statement.params[name]
    types = {sent: build_type(statement.types[name]) for name, sent in names.items()}
    return SentStatement(text, values, types)


def build_param_types(statement: Statement) -> dict[str, TypePb]:
    """The types of a statement's parameters."""
    return {name: build_type(type_) for name, type_ in statement.types.items()}


@cache
def build_type(type_: Type) -> TypePb:
    """A type of a parameter. What is the same for every query is made once: a poll of thousands of
    tables has thousands of parameters."""
    written = ANNOTATIONS.get(type_.code)
    annotation = getattr(TypeAnnotationCode, type_.code.value if written else UNANNOTATED)
    code = getattr(TypeCodePb, (written or type_.code).value)
    if type_.element is None:
        name = type_.proto_name or ""
        return TypePb(code=code, type_annotation=annotation, proto_type_fqn=name)
    return TypePb(code=code, array_element_type=build_type(type_.element))


def make_low_options(work: str) -> RequestOptions:
    """The options of a request that yields to everybody else's, with a tag that says for what work
    it is."""
    return RequestOptions(
        priority=RequestOptions.Priority.PRIORITY_LOW, request_tag=write_tag(work)
    )


def apply_options(options: ReadOptions, request: Request) -> None:
    """Puts the options of a reader into a request."""
    priority = options.priority.name if options.priority is not None else "UNSPECIFIED"
    request.request_options = RequestOptions(
        priority=getattr(RequestOptions.Priority, f"PRIORITY_{priority}"), request_tag=options.tag
    )
    if options.directed_read is not None:
        request.directed_read_options = build_directed_read(options.directed_read)


def build_directed_read(directed: DirectedRead) -> DirectedReadOptions:
    """Which replicas serve a read."""
    if directed.exclude:
        excluded = DirectedReadOptions.ExcludeReplicas(
            replica_selections=build_selections(directed.exclude)
        )
        return DirectedReadOptions(exclude_replicas=excluded)
    included = DirectedReadOptions.IncludeReplicas(
        replica_selections=build_selections(directed.include),
        auto_failover_disabled=directed.auto_failover_disabled,
    )
    return DirectedReadOptions(include_replicas=included)


def build_selections(replicas: Sequence[Replica]) -> list[DirectedReadOptions.ReplicaSelection]:
    """Replicas by location, type, or both."""
    types = DirectedReadOptions.ReplicaSelection.Type
    return [
        DirectedReadOptions.ReplicaSelection(
            location=replica.location or "",
            type_=getattr(types, replica.type.name if replica.type else "TYPE_UNSPECIFIED"),
        )
        for replica in replicas
    ]
