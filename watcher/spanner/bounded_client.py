"""The client's calls within bounds: none is retried without a pause, or for minutes.

google-cloud-spanner resumes a streaming call at once, and without end, while it gets UNAVAILABLE:
a server that is gone costs a whole core. Here the calls of transactions and snapshots are retried
at growing intervals for a few seconds and then end with RetryError, which no loop of the client
catches; the caller decides when to call again.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import grpc
from google.api_core.exceptions import ResourceExhausted, ServiceUnavailable
from google.api_core.gapic_v1.method import DEFAULT
from google.api_core.retry import Retry, if_exception_type
from google.cloud.spanner_v1 import BurstyPool, SpannerClient
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.services.spanner.transports import SpannerGrpcTransport

from watcher.spanner.failures import OUTAGE_SECONDS_MAX

CALL_SECONDS_MAX = 30.0
COMMIT_SECONDS_MAX = 60.0
RETRY = Retry(
    predicate=if_exception_type(ServiceUnavailable, ResourceExhausted),
    initial=0.1,
    maximum=1.0,
    multiplier=2.0,
    timeout=OUTAGE_SECONDS_MAX,
)
CHANNEL_OPTIONS = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2_000),
)
"""gRPC: by default a channel waits up to two minutes before it reconnects to a server."""

Method = Callable[..., Any]


def limit_call(method: Method, seconds: float | None) -> Method:
    """A method of the client that ends within bounds, unless the caller gives others. ``seconds``
    is the timeout of one try; None leaves the client's."""

    @functools.wraps(method)
    def call(*args: Any, retry: Any = DEFAULT, timeout: Any = DEFAULT, **kwargs: Any) -> Any:
        if retry is DEFAULT:
            retry = RETRY
        if timeout is DEFAULT and seconds is not None:
            timeout = seconds
        return method(*args, retry=retry, timeout=timeout, **kwargs)

    return call


class BoundedClient(SpannerClient):
    """As the generated client. A stream may last as long as before: only its start is bounded,
    which is also where it is resumed."""

    begin_transaction = limit_call(SpannerClient.begin_transaction, CALL_SECONDS_MAX)
    commit = limit_call(SpannerClient.commit, COMMIT_SECONDS_MAX)
    create_session = limit_call(SpannerClient.create_session, CALL_SECONDS_MAX)
    delete_session = limit_call(SpannerClient.delete_session, CALL_SECONDS_MAX)
    execute_batch_dml = limit_call(SpannerClient.execute_batch_dml, CALL_SECONDS_MAX)
    execute_sql = limit_call(SpannerClient.execute_sql, CALL_SECONDS_MAX)
    execute_streaming_sql = limit_call(SpannerClient.execute_streaming_sql, None)
    rollback = limit_call(SpannerClient.rollback, CALL_SECONDS_MAX)
    streaming_read = limit_call(SpannerClient.streaming_read, None)


class BoundedDatabase(Database):
    """As the client's database, over a ``BoundedClient``."""

    def __init__(self, name: str, instance: Any) -> None:
        pool = BurstyPool()
        super().__init__(name, instance, pool=pool)  # type: ignore[no-untyped-call]
        pool.bind(self)  # as Instance.database does
        self._opening = threading.Lock()
        self._client: BoundedClient | None = None

    @property
    def spanner_api(self) -> BoundedClient:
        """The client of this database, created on first use."""
        with self._opening:
            if self._client is None:
                self._client = BoundedClient(transport=self._transport())
            return self._client

    def run_in_transaction(self, func: Callable[..., Any], *args: Any, **kw: Any) -> Any:
        """As the client's, with the session opened first: the client marks its thread as inside a
        transaction before it asks for one, and when there is none, all later transactions of the
        thread fail as "nested"."""
        with self.snapshot():  # type: ignore[no-untyped-call]
            pass
        return super().run_in_transaction(func, *args, **kw)  # type: ignore[no-untyped-call]

    def _transport(self) -> SpannerGrpcTransport:
        host = self._instance.emulator_host
        if host is None:
            transport: SpannerGrpcTransport = super().spanner_api.transport
            return transport
        return SpannerGrpcTransport(channel=grpc.insecure_channel(host, CHANNEL_OPTIONS))
