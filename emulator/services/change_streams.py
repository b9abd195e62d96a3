"""Queries of change streams: their arguments, their refusals, and records as they come."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from emulator.engine.change_streams.json_records import record_to_jsonb
from emulator.engine.change_streams.mutable import is_mutable
from emulator.engine.change_streams.reading import Caller, ReadArguments
from emulator.errors import invalid_argument, unimplemented
from emulator.services.calls import RpcContext
from emulator.services.record_messages import OtherForm, RecordWriter, parse_token
from emulator.services.sessions import Session
from emulator.services.statements import decode_parameter
from emulator.services.streams import Streams
from emulator.sql.change_streams import ARGUMENTS, CHANGE_RECORD, TIMESTAMP, ReadCall
from emulator.values import forms
from emulator.values.protos import NO_TYPES
from emulator.values.requests import ResultColumn, Stored
from emulator.values.timestamp_texts import timestamp_form
from emulator.values.types import BYTES, INT64, PG_JSONB, STRING
from emulator.wire.change_records import encode_record, record_metadata
from emulator.wire.messages import Message
from emulator.wire.types import result_metadata
from emulator.wire.values import decoder
from spanner_schema.model.schema import Dialect

PLAN = 1
AS_MESSAGE = OtherForm(STRING, encode_record)
AS_JSON = OtherForm(PG_JSONB, partial(record_to_jsonb, type_=CHANGE_RECORD))
READ_TIMESTAMP = 2**63 - 2
"""What Spanner says for the read timestamp of such a query; it must not be used."""


def stream_records(
    call: ReadCall, session: Session, request: Message, streams: Streams, context: RpcContext
) -> Iterator[bytes]:
    """PartialResultSet messages: the records that are ready at once go out together, and a resume
    token follows the last of each message."""
    check_transaction(request)
    rights = session.rights
    if rights is not None:
        rights.require_change_stream(call.stream, call.function)
    if request.query_mode == PLAN:
        raise unimplemented("Query plans of change streams")
    arguments = read_arguments(call, request)
    caller = Caller(context.check, context.when_gone)
    after = parse_token(request.resume_token)
    schema = session.database.engine.schema
    stream = schema.change_stream(call.stream)
    as_message = stream is not None and is_mutable(stream)
    postgres = schema.dialect is Dialect.POSTGRESQL
    if as_message:
        metadata = bytes_metadata(call) if postgres else record_metadata(call.column)
        form: OtherForm | None = AS_MESSAGE
    else:
        type_ = PG_JSONB if postgres else CHANGE_RECORD
        metadata = result_metadata((ResultColumn(call.column, type_),))
        form = AS_JSON if postgres else None
    tell_read_timestamp(metadata, request)
    writer = RecordWriter(metadata.SerializeToString() if after is None else None, form)
    with streams.room():
        number = 0
        for ready in session.database.engine.change_streams.read(arguments, after, caller):
            for count, (place, text) in enumerate(ready, start=1):
                number += 1
                yield from writer.add(place, text)
                if count == len(ready) or writer.full or streams.may_break_at(number):
                    yield writer.flush()
                    context.check()
                    streams.may_break(number)


def bytes_metadata(call: ReadCall) -> Message:
    """The one column of the PostgreSQL dialect, which has no type for messages: their bytes."""
    return result_metadata((ResultColumn(call.column, BYTES),))


def tell_read_timestamp(metadata: Message, request: Message) -> None:
    """The transaction's special timestamp when it was asked for."""
    if request.transaction.single_use.read_only.return_read_timestamp:
        metadata.transaction.read_timestamp.FromNanoseconds(READ_TIMESTAMP)


def check_transaction(request: Message) -> None:
    """Only a single-use strong read-only transaction will do."""
    selector = request.transaction
    options = selector.single_use
    bound = options.read_only.WhichOneof("timestamp_bound")
    if (
        selector.WhichOneof("selector") in {"id", "begin"}
        or options.WhichOneof("mode") not in {None, "read_only"}
        or (bound is not None and bound != "strong")
    ):
        raise invalid_argument(
            "Change stream queries must be executed in a single-use read-only transaction with a "
            "strong timestamp bound."
        )


def refuse_unary() -> None:
    """ExecuteSql cannot answer such a query."""
    raise invalid_argument(
        "Change stream queries are not supported for the ExecuteSql API. Please use the "
        "ExecuteStreamingSql API."
    )


def read_arguments(call: ReadCall, request: Message) -> ReadArguments:
    """The values of a call. Raises INVALID_ARGUMENT for those that are NULL and may not be."""
    start = timestamp_micros(argument_value(call, "start_timestamp", request), up=True)
    beat = argument_value(call, "heartbeat_milliseconds", request)
    token = argument_value(call, "partition_token", request)
    if start is None:
        raise invalid_argument("start_timestamp must not be null.")
    if not isinstance(beat, int):
        raise invalid_argument("heartbeat_milliseconds must not be null.")
    if argument_value(call, "read_options", request) is not None:
        raise invalid_argument("read_options must be null.")
    end = timestamp_micros(argument_value(call, "end_timestamp", request))
    return ReadArguments(
        call.stream,
        start,
        end,
        None if token is None else str(token),
        beat,
        placement=call.placement,
    )


def timestamp_micros(form: Stored, *, up: bool = False) -> int | None:
    """A timestamp argument in Unix microseconds: the start, from which on records come, is rounded
    up, and the end, up to which they come, down."""
    return None if form is None else forms.micros_from_timestamp(str(form), up=up)


def argument_value(call: ReadCall, name: str, request: Message) -> Stored:
    """An argument in storage form: a parameter's value or a literal."""
    argument, type_ = call.arguments.get(name), ARGUMENTS[name]
    if argument is None:
        return None
    try:
        if argument.parameter is not None:
            fields = {key.casefold(): field for key, field in request.params.fields.items()}
            if argument.parameter.casefold() not in fields:
                raise invalid_argument(f"No parameter found for binding: {argument.parameter}")
            value = fields[argument.parameter.casefold()]
            return decode_parameter(decoder(type_, NO_TYPES), value)
        if argument.text is None:
            return None
        if type_ is TIMESTAMP:
            return timestamp_form(argument.text)
        return int(argument.text) if type_ is INT64 else argument.text
    except ValueError as error:
        raise invalid_argument(f"Invalid value for {name}: {error}") from error
