"""PartitionQuery and PartitionRead: tokens that name a part of a query or read.

A query whose rows cannot be told apart by a key is one partition; so is, for now, every query and
read: the service promises no number of partitions, only that together they give every row once.
"""

from __future__ import annotations

import hashlib

from emulator.engine.read_only import ReadOnlyTransaction
from emulator.errors import SpannerError, invalid_argument
from emulator.services.calls import Context
from emulator.services.sessions import Sessions
from emulator.services.statements import prepare
from emulator.services.transactions import Selected, Transactions
from emulator.sql.statements import Query
from emulator.wire import messages as m
from emulator.wire.keys import key_set, key_types
from emulator.wire.messages import Message

MAGIC = b"swp1"


class Partitions:
    """Makes the tokens."""

    def __init__(self, sessions: Sessions, transactions: Transactions) -> None:
        self._sessions = sessions
        self._transactions = transactions

    def query(self, request: Message, context: Context) -> Message:
        """The partitions of a query."""
        session = self._sessions.get(request.session)
        database = session.database.engine
        prepared = prepare(database, request.sql, request.params, request.param_types)
        if not isinstance(prepared.statement, Query):
            raise invalid_argument("Only queries can be partitioned.")
        selected = self._transactions.select(session, request.transaction, context)
        return answer(selected, query_digest(request))

    def read(self, request: Message, context: Context) -> Message:
        """The partitions of a read."""
        session = self._sessions.get(request.session)
        schema = session.database.engine.schema
        key_set(key_types(schema, request.table, request.index), request.key_set)
        selected = self._transactions.select(session, request.transaction, context)
        return answer(selected, read_digest(request))


def answer(selected: Selected, digest: bytes) -> Message:
    """The partitions, and the transaction that was begun for them."""
    transaction = selected.transaction
    if not isinstance(transaction.engine, ReadOnlyTransaction) or not transaction.id:
        raise invalid_argument("Partitions need a read-only transaction that is not single-use.")
    response = m.PartitionResponse()
    response.partitions.add(partition_token=MAGIC + digest)
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


def check_token(token: bytes, digest: bytes) -> None:
    """A token fits only the query or read that it was made for."""
    if token and token != MAGIC + digest:
        raise wrong_token()


def wrong_token() -> SpannerError:
    """A token of something else, or none of ours."""
    return invalid_argument(
        "The partition token does not belong to this query or read: everything but the token must "
        "be as it was when the token was made."
    )
