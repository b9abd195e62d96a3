"""What no answer may be: an error of the server itself, or one in another program's words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import grpc
from google.longrunning.operations_pb2 import Operation
from google.protobuf.message import DecodeError

from emulator.wire import messages as m

MESSAGE_BYTES_MAX = 4_096
OWN_FAULTS = {
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.UNAVAILABLE,
}
NUMBERS = {code.value[0]: code for code in grpc.StatusCode}
FOREIGN = re.compile(
    r"\b(?:Key|Type|Value|Index|Attribute|Recursion|Overflow|Unicode\w*|Memory|Assertion|SQL|Parse"
    r"|Token)Error\b|Traceback|sqlite|apsw|sqlglot|no such (?:column|table|function)|NoneType"
    r"|object has no attribute|maximum recursion|codec can't|is not JSON serializable"
    r"|wrong number of arguments|near \"[^\"]*\": syntax|parser stack|too many (?:terms|SQL)"
    r"|invalid literal for|out of range: index|list index|not subscriptable|positional argument"
    r"|Exceeds the limit|month must be|day is out of range|<class |embedded Spanner failed",
    re.IGNORECASE,
)
"""The words of Python, SQLite and the parser library."""


def faults_of(method: str, code: grpc.StatusCode, answer: Any) -> Iterator[str]:
    """What is wrong with an answer."""
    statuses = (
        list(inner_statuses(method, answer))
        if code is grpc.StatusCode.OK
        else [(code, str(answer))]
    )
    for inner, message in statuses:
        if inner in OWN_FAULTS:
            yield f"{inner.name}: {message[:300]}"
        elif "metadata" in message and inner is grpc.StatusCode.RESOURCE_EXHAUSTED:
            yield f"the message broke the connection's limit: {message[:300]}"
        elif len(message.encode()) > MESSAGE_BYTES_MAX:
            yield f"a message of {len(message.encode())} bytes: {message[:200]}"
        elif inner is not grpc.StatusCode.OK and FOREIGN.search(without_input(message)):
            yield f"foreign words: {inner.name}: {message[:300]}"


def without_input(message: str) -> str:
    """A message without what it quotes: that may be any text."""
    return re.sub(r"'[^']*'|\[at .*", "", message, flags=re.DOTALL)


def inner_statuses(method: str, answer: Any) -> Iterator[tuple[grpc.StatusCode, str]]:
    """The statuses inside an answer: of a batch, of groups of mutations, of an operation."""
    name = method.rpartition("/")[2]
    try:
        if name == "ExecuteBatchDml":
            parts = [m.ExecuteBatchDmlResponse.FromString(answer).status]
        elif name == "BatchWrite":
            parts = [m.BatchWriteResponse.FromString(each).status for each in answer]
        elif name in {"UpdateDatabaseDdl", "CreateDatabase", "GetOperation", "WaitOperation"}:
            parts = [Operation.FromString(answer).error]
        else:
            return
    except DecodeError as error:
        yield grpc.StatusCode.INTERNAL, f"an answer that is no message: {error}"
        return
    for status in parts:
        yield NUMBERS[status.code], status.message
