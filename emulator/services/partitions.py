"""PartitionQuery and PartitionRead: tokens that name a part of a query or read.

A partition is a range of the keys of the table (or forced index) that is read. Its token carries
the range, so that whoever holds the token reads those rows, at the transaction's timestamp.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence

from emulator.engine.read_only import ReadOnlyTransaction
from emulator.errors import SpannerError, invalid_argument
from emulator.services.calls import RpcContext
from emulator.services.sessions import Sessions
from emulator.services.statements import bind_statement
from emulator.services.transactions import SelectedTransaction, Transactions
from emulator.values.requests import KeyRange, KeySet, Stored
from emulator.wire import messages as m
from emulator.wire.keys import key_decoders, read_key_set
from emulator.wire.messages import Message
from emulator.wrong import Wrong, is_wrong

MAGIC = b"swp2"
HEAD_BYTES = len(MAGIC) + hashlib.sha256().digest_size
PARTITIONS_MAX = 16


class Partitions:
    """Makes the tokens."""

    def __init__(self, sessions: Sessions, transactions: Transactions) -> None:
        self._sessions = sessions
        self._transactions = transactions

    def query(self, request: Message, context: RpcContext) -> Message:
        """The partitions of a query."""
        session = self._sessions.get(request.session)
        selected = self._transactions.select(session, request.transaction, context)
        with selected.abandon_on_error():
            statement = bind_statement(selected, request, session.rights)
            if not statement.is_query:
                raise invalid_argument("Only queries can be partitioned.")
            cut = statement.compiled.find_partitioned_table()
            limit = 1 if cut.one_row else partition_limit(request)
            return partition_response(
                selected,
                query_digest(request),
                lambda engine: engine.splits(cut.table, cut.index, KeySet(all=True), limit),
            )

    def read(self, request: Message, context: RpcContext) -> Message:
        """The partitions of a read."""
        session = self._sessions.get(request.session)
        index = request.index or None
        selected = self._transactions.select(session, request.transaction, context)
        with selected.abandon_on_error():
            schema = selected.transaction.engine.state.schema
            keys = read_key_set(key_decoders(schema, request.table, request.index), request.key_set)
            return partition_response(
                selected,
                read_digest(request),
                lambda engine: engine.splits(request.table, index, keys, partition_limit(request)),
            )


def partition_limit(request: Message) -> int:
    """How many partitions there may be. What a client wishes is ignored, as Spanner ignores it."""
    options = request.partition_options
    if options.max_partitions < 0 or options.partition_size_bytes < 0:
        raise invalid_argument("Partition options must not be negative.")
    return PARTITIONS_MAX


def partition_response(
    selected: SelectedTransaction,
    digest: bytes,
    ranges: Callable[[ReadOnlyTransaction], list[KeyRange]],
) -> Message:
    """The partitions, and the transaction that was begun for them."""
    transaction = selected.transaction
    if not isinstance(transaction.engine, ReadOnlyTransaction) or not transaction.id:
        raise invalid_argument(
            "Partitions need a read-only transaction with an id: single-use transactions have none."
        )
    response = m.PartitionResponse()
    there = ranges(transaction.engine)
    if is_wrong(Wrong.PARTITIONS_COVER_ROWS):
        there = there[:-1]
    for keys in there:
        response.partitions.add(partition_token=make_token(digest, keys))
    response.transaction.id = transaction.id
    if selected.begun is not None:
        response.transaction.CopyFrom(selected.begun)
    return response


def query_digest(request: Message) -> bytes:
    """What makes a query the same: its text and its parameters."""
    parts = [request.sql.encode(), request.params.SerializeToString(deterministic=True)]
    return hashlib.sha256(b"\0".join(parts)).digest()


def read_digest(request: Message) -> bytes:
    """What makes a read the same: table, index, columns and keys."""
    names = [request.table, request.index, *request.columns]
    parts = [name.encode() for name in names] + [request.key_set.SerializeToString()]
    return hashlib.sha256(b"\0".join(parts)).digest()


def make_token(digest: bytes, keys: KeyRange) -> bytes:
    """A token: what it belongs to, and its range."""
    text = json.dumps([key_to_json(keys.start), key_to_json(keys.end), keys.end_closed]).encode()
    return MAGIC + hashlib.sha256(digest + text).digest() + text


def read_token(token: bytes, digest: bytes) -> KeyRange:
    """The range of a token, which fits only the query or read that it was made for."""
    head, text = token[:HEAD_BYTES], token[HEAD_BYTES:]
    if head != MAGIC + hashlib.sha256(digest + text).digest():
        raise wrong_token()
    try:
        start, end, end_closed = json.loads(text)
        return KeyRange(key_from_json(start), key_from_json(end), True, bool(end_closed))
    except (ValueError, TypeError) as error:
        raise wrong_token() from error


def key_to_json(key: Sequence[Stored]) -> list[object]:
    """A key as JSON; bytes as a list with their hexadecimal text."""
    return [[part.hex()] if isinstance(part, bytes) else part for part in key]


def key_from_json(key: Sequence[object]) -> tuple[Stored, ...]:
    """The key of ``key_to_json``. Raises ValueError or TypeError for anything else."""
    parts: list[Stored] = []
    for part in key:
        if isinstance(part, list):
            parts.append(bytes.fromhex(part[0]))
        elif part is None or isinstance(part, int | float | str):
            parts.append(part)
        else:
            raise ValueError("not a part of a key")
    return tuple(parts)


def wrong_token() -> SpannerError:
    """A token of something else, or none of ours."""
    return invalid_argument(
        "The partition token does not belong to this query or read: send the request that created "
        "the token, with nothing but the token added."
    )
