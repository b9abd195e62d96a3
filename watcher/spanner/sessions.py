"""What the queries of a process share: one client a database, its channel and one session."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import grpc
from google.api_core.exceptions import NotFound
from google.api_core.gapic_v1.client_info import ClientInfo
from google.api_core.gapic_v1.routing_header import to_grpc_metadata
from google.cloud.spanner_v1 import ExecuteSqlRequest, ReadRequest
from google.cloud.spanner_v1.database import Database

from watcher.spanner.address import EMULATOR_HOST, DatabaseAddress
from watcher.spanner.database import open_database
from watcher.spanner.dialects import SqlDialect
from watcher.spanner.failures import FailureKind, classify_error
from watcher.spanner.results.wire import ResultPart, parse_result_part

SERVICE = "/google.spanner.v1.Spanner/"
CREATE_SECONDS_MAX = 30.0
StreamCall = Callable[..., Iterable[ResultPart]]
Metadata = tuple[tuple[str, str], ...]
CLIENT = ("x-goog-api-client", ClientInfo(client_library_version="watcher").to_user_agent())


class SharedSession:
    """A multiplexed session, which is replaced when it is lost. Any number of threads may use it;
    it keeps no state of theirs."""

    def __init__(self, database: Database) -> None:
        self.database_name: str = database.name
        self.role: str = database.database_role or ""
        self.api = database.spanner_api
        self.metadata: Metadata = (("google-cloud-resource-prefix", database.name),)
        # The generated client would create an object for every value: see results/wire.py.
        channel = self.api.transport.grpc_channel
        self.execute = make_stream_call(channel, "ExecuteStreamingSql", ExecuteSqlRequest.serialize)
        self.read = make_stream_call(channel, "StreamingRead", ReadRequest.serialize)
        self.sql: SqlDialect | None = None
        """How statements are written for the database, once somebody has asked for it."""
        self._lock = threading.Lock()
        self._name = ""

    @property
    def name(self) -> str:
        """The session's name. Creates a session if there is none; errors are the client's."""
        with self._lock:
            if not self._name:
                session = self.api.create_session(
                    request={
                        "database": self.database_name,
                        "session": {"multiplexed": True, "creator_role": self.role},
                    },
                    metadata=self.metadata,
                    retry=None,
                    timeout=CREATE_SECONDS_MAX,
                )
                self._name = session.name
            return self._name

    def forget(self, name: str, error: NotFound) -> None:
        """Replaces a session that is gone, once for all streams that were under way in it. Raises
        the error for anything else that is gone, and where no session could be created: then its
        database is gone."""
        if not name or classify_error(error) is not FailureKind.SESSION:
            raise error
        with self._lock:
            if name == self._name:
                self._name = ""
                self.sql = None  # the database may have been dropped and created again

    def build_metadata(self, name: str) -> Metadata:
        """The metadata of a stream in a session."""
        return (*self.metadata, to_grpc_metadata([("session", name)]), CLIENT)


def make_stream_call(
    channel: grpc.Channel, method: str, serializer: Callable[[Any], bytes]
) -> StreamCall:
    """A streaming method of Spanner's whose messages are read as ``results.wire`` defines them."""
    call: StreamCall = channel.unary_stream(
        SERVICE + method, request_serializer=serializer, response_deserializer=parse_result_part
    )
    return call


def get_shared_session(address: DatabaseAddress) -> SharedSession:
    """One client a process and database: tasks of a Spark executor share its channel. No call."""
    # Each request says which replicas serve it.
    return get_cached_session(address.for_writes, os.environ.get(EMULATOR_HOST))


@lru_cache(maxsize=16)
def get_cached_session(address: DatabaseAddress, _host: str | None) -> SharedSession:
    """``_host`` is part of the key: the same address may be on another emulator a moment later."""
    return SharedSession(open_database(address))
