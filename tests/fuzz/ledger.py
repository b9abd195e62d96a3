"""Commits whose outcome is known beforehand: what a read finds in the end must be just that."""

from __future__ import annotations

import random
from typing import Any

import grpc

from emulator.wire import messages as m
from fuzz.channel import Server

SCHEMA = ("CREATE TABLE L (K INT64 NOT NULL, V STRING(10) NOT NULL) PRIMARY KEY (K)",)
KEYS = 40


class Ledger:
    """One writer's keys in a database that nobody else writes, and a model of them."""

    def __init__(self, server: Server, database: str, number: int) -> None:
        self._server = server
        self._session = server.create_session(database)
        self._first = number * 1_000
        self.rows: dict[int, str] = {}

    def commit(self, choice: random.Random) -> list[str]:
        """A commit of a few random writes; what is wrong with its outcome."""
        request = m.CommitRequest(session=self._session)
        request.single_use_transaction.read_write.SetInParent()
        after = dict(self.rows)
        expected = grpc.StatusCode.OK
        for _ in range(choice.randrange(1, 5)):
            kind = choice.choice(["insert", "update", "insert_or_update", "replace", "delete"])
            key = self._first + choice.randrange(KEYS)
            value = choice.choice(["a", "b", "", "\u6f22", "x" * 10, "x" * 11, None])
            add_write(request, kind, key, value)
            if expected is grpc.StatusCode.OK:
                expected = apply(after, kind, key, value)
        code, _ = self._server.call("/google.spanner.v1.Spanner/Commit", request)
        if code is not expected:
            return [f"ledger: {code} instead of {expected} for {request}"]
        if code is grpc.StatusCode.OK:
            self.rows = after
        return []

    def check(self) -> list[str]:
        """Reads the rows back; what differs from the model."""
        request = m.ReadRequest(session=self._session, table="L", columns=["K", "V"])
        keys = request.key_set.ranges.add()
        keys.start_closed.values.add().string_value = str(self._first)
        keys.end_closed.values.add().string_value = str(self._first + KEYS)
        code, answer = self._server.call("/google.spanner.v1.Spanner/Read", request)
        if code is not grpc.StatusCode.OK:
            return [f"ledger: it cannot be read: {answer}"]
        rows = {
            int(row.values[0].string_value): row.values[1].string_value
            for row in m.ResultSet.FromString(answer).rows
        }
        return [] if rows == self.rows else [f"ledger: {rows} was read, {self.rows} was written"]


def add_write(request: Any, kind: str, key: int, value: str | None) -> None:
    """Adds a mutation to a commit."""
    mutation = getattr(request.mutations.add(), kind)
    mutation.table = "L"
    if kind == "delete":
        mutation.key_set.keys.add().values.add().string_value = str(key)
        return
    mutation.columns.extend(["K", "V"])
    row = mutation.values.add()
    row.values.add().string_value = str(key)
    if value is None:
        row.values.add().null_value = 0
    else:
        row.values.add().string_value = value


def apply(rows: dict[int, str], kind: str, key: int, value: str | None) -> grpc.StatusCode:
    """Does to a model what a mutation does; the status that it must have."""
    if kind == "delete":
        rows.pop(key, None)
        return grpc.StatusCode.OK
    if kind == "update" and key not in rows:
        return grpc.StatusCode.NOT_FOUND
    if value is None or len(value) > 10:
        return grpc.StatusCode.FAILED_PRECONDITION
    if kind == "insert" and key in rows:
        return grpc.StatusCode.ALREADY_EXISTS
    rows[key] = value
    return grpc.StatusCode.OK
