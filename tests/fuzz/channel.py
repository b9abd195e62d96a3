"""Calls with raw messages, and what is needed around them: databases and sessions."""

from __future__ import annotations

from typing import Any

import grpc

from emulator.wire import messages as m

DATABASES = "/google.spanner.admin.database.v1.DatabaseAdmin/"
INSTANCES = "/google.spanner.admin.instance.v1.InstanceAdmin/"
STREAMS = ("ExecuteStreamingSql", "StreamingRead", "BatchWrite")
SECONDS = 20.0
INSTANCE = "projects/fuzz/instances/fuzz"


class Server:
    """An embedded Spanner at an address, without a client library between."""

    def __init__(self, address: str) -> None:
        self._channel = grpc.insecure_channel(address)

    def call(
        self, method: str, request: Any, seconds: float = SECONDS
    ) -> tuple[grpc.StatusCode, Any]:
        """The status of a call, with the answer (bytes; of a stream, a list) or the message."""
        data = request.SerializeToString()
        try:
            if method.rpartition("/")[2] in STREAMS:
                stream: Any = self._channel.unary_stream(method)  # type: ignore[call-arg]
                return grpc.StatusCode.OK, list(stream(data, timeout=seconds))
            unary: Any = self._channel.unary_unary(method)  # type: ignore[call-arg]
            return grpc.StatusCode.OK, unary(data, timeout=seconds)
        except grpc.RpcError as error:
            return error.code(), error.details() or ""

    def expect(self, method: str, request: Any) -> bytes:
        """The answer of a call that must succeed."""
        code, answer = self.call(method, request)
        if code is not grpc.StatusCode.OK:
            raise AssertionError(f"{method}: {code}: {answer}")
        data: bytes = answer
        return data

    def create_instance(self) -> None:
        """The instance of the databases, if it is not there."""
        parent, _, identifier = INSTANCE.rpartition("/instances/")
        request = m.CreateInstanceRequest(parent=parent, instance_id=identifier)
        self.call(INSTANCES + "CreateInstance", request)

    def create_database(self, identifier: str, *statements: str) -> str:
        """A new database; its name."""
        request = m.CreateDatabaseRequest(
            parent=INSTANCE,
            create_statement=f"CREATE DATABASE `{identifier}`",
            extra_statements=statements,
        )
        self.expect(DATABASES + "CreateDatabase", request)
        return f"{INSTANCE}/databases/{identifier}"

    def drop_database(self, name: str) -> None:
        """Drops a database."""
        self.call(DATABASES + "DropDatabase", m.DropDatabaseRequest(database=name))

    def create_session(self, database: str, *, multiplexed: bool = False) -> str:
        """A new session; its name."""
        request = m.CreateSessionRequest(database=database)
        request.session.multiplexed = multiplexed
        answer = self.expect("/google.spanner.v1.Spanner/CreateSession", request)
        name: str = m.Session.FromString(answer).name
        return name

    def close(self) -> None:
        """Closes the connection."""
        self._channel.close()
