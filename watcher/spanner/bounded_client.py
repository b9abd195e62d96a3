"""The client's calls within bounds: none is retried without a pause, or for minutes.

google-cloud-spanner resumes a streaming call at once, and without end, while it gets UNAVAILABLE:
a server that is gone costs a whole core. Here the calls of transactions and snapshots are retried
at growing intervals for a few seconds and then end with RetryError, which no loop of the client
catches; the caller decides when to call again.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

from google.api_core.exceptions import AlreadyExists, ResourceExhausted, ServiceUnavailable
from google.api_core.gapic_v1.method import DEFAULT
from google.api_core.operation import Operation, from_gapic
from google.api_core.retry import Retry, if_exception_type
from google.auth.credentials import Scoped
from google.cloud import spanner
from google.cloud.spanner_admin_database_v1 import DatabaseAdminClient, UpdateDatabaseDdlMetadata
from google.cloud.spanner_admin_database_v1.services.database_admin.transports import (
    DatabaseAdminGrpcTransport,
)
from google.cloud.spanner_admin_instance_v1 import InstanceAdminClient
from google.cloud.spanner_admin_instance_v1.services.instance_admin.transports import (
    InstanceAdminGrpcTransport,
)
from google.cloud.spanner_v1 import BurstyPool, SpannerClient
from google.cloud.spanner_v1.database import SPANNER_DATA_SCOPE, Database
from google.cloud.spanner_v1.services.spanner.transports import SpannerGrpcTransport
from google.protobuf.empty_pb2 import Empty

from watcher.spanner.channels import open_service
from watcher.spanner.failures import OUTAGE_SECONDS_MAX
from watcher.spanner.read_options import APPLICATION

CALL_SECONDS_MAX = 30.0
COMMIT_SECONDS_MAX = 60.0
ADMIN_SECONDS_MAX = 30.0
"""A project may make few admin calls a second: those that are refused are made again for longer."""
RETRY = Retry(
    predicate=if_exception_type(ServiceUnavailable, ResourceExhausted),
    initial=0.1,
    maximum=1.0,
    multiplier=2.0,
    timeout=OUTAGE_SECONDS_MAX,
)
ADMIN_RETRY = RETRY.with_timeout(ADMIN_SECONDS_MAX)
Method = Callable[..., Any]


def limit_call(method: Method, seconds: float | None, within: Retry = RETRY) -> Method:
    """A method of the client that ends within bounds, unless the caller gives others. ``seconds``
    is the timeout of one try; None leaves the client's."""

    @functools.wraps(method)
    def call(*args: Any, retry: Any = DEFAULT, timeout: Any = DEFAULT, **kwargs: Any) -> Any:
        if retry is DEFAULT:
            retry = within
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

    def __init__(self, name: str, instance: Any, role: str | None = None) -> None:
        pool = BurstyPool(database_role=role)
        super().__init__(  # type: ignore[no-untyped-call]
            name, instance, pool=pool, database_role=role
        )
        pool.bind(self)  # as Instance.database does
        self._opening = threading.Lock()
        self._client: BoundedClient | None = None

    @property
    def spanner_api(self) -> BoundedClient:
        """The client of this database, created on first use."""
        with self._opening:
            if self._client is None:
                client = self._instance._client
                credentials = client.credentials
                if isinstance(credentials, Scoped):
                    credentials = credentials.with_scopes((SPANNER_DATA_SCOPE,))
                self._client = open_service(
                    BoundedClient, SpannerGrpcTransport, client, credentials
                )
            return self._client

    def run_in_transaction(self, func: Callable[..., Any], *args: Any, **kw: Any) -> Any:
        """As the client's, with the session opened first: the client marks its thread as inside a
        transaction before it asks for one, and when there is none, all later transactions of the
        thread fail as "nested"."""
        with self.snapshot():  # type: ignore[no-untyped-call]
            pass
        kw.setdefault("transaction_tag", APPLICATION)
        return super().run_in_transaction(func, *args, **kw)  # type: ignore[no-untyped-call]

    def batch(self, request_options: Any = None, *args: Any, **kw: Any) -> Any:
        """As the client's; its transaction has our tag."""
        options = request_options or {"transaction_tag": APPLICATION}
        return super().batch(options, *args, **kw)  # type: ignore[no-untyped-call]

    def execute_partitioned_dml(self, *args: Any, **kw: Any) -> Any:
        """As the client's; its requests have our tag."""
        kw.setdefault("request_options", {"request_tag": APPLICATION})
        return super().execute_partitioned_dml(*args, **kw)  # type: ignore[no-untyped-call]

    def update_ddl(
        self, ddl_statements: Sequence[str], operation_id: str = "", *args: Any, **kw: Any
    ) -> Operation:
        """As the client's, with a name for the operation: a request whose answer was lost, and that
        is sent again, finds the operation that it has begun and runs no statement twice."""
        named = operation_id or f"spanner_watcher_{uuid4().hex}"
        try:
            begun: Operation = super().update_ddl(ddl_statements, named, *args, **kw)  # type: ignore[no-untyped-call]
        except AlreadyExists:
            if operation_id:
                raise
            return self.find_schema_update(f"{self.name}/operations/{named}")
        return begun

    def find_schema_update(self, name: str) -> Operation:
        """A schema update that was begun before, by the name of its operation."""
        operations = self._instance._client.database_admin_api.transport.operations_client
        operation: Operation = from_gapic(
            operations.get_operation(name, retry=ADMIN_RETRY),
            operations,
            Empty,
            metadata_type=UpdateDatabaseDdlMetadata,
        )
        return operation


class BoundedDatabaseAdmin(DatabaseAdminClient):
    """As the generated client; calls that the service refuses for now are made again."""

    get_database = limit_call(DatabaseAdminClient.get_database, CALL_SECONDS_MAX, ADMIN_RETRY)
    get_database_ddl = limit_call(
        DatabaseAdminClient.get_database_ddl, CALL_SECONDS_MAX, ADMIN_RETRY
    )
    list_database_operations = limit_call(
        DatabaseAdminClient.list_database_operations, CALL_SECONDS_MAX, ADMIN_RETRY
    )
    update_database_ddl = limit_call(
        DatabaseAdminClient.update_database_ddl, CALL_SECONDS_MAX, ADMIN_RETRY
    )


class BoundedSpanner(spanner.Client):
    """As the client of a project, with admin calls over channels like those of its databases."""

    @property
    def instance_admin_api(self) -> InstanceAdminClient:
        """Calls for instances."""
        if self._instance_admin_api is None:
            self._instance_admin_api = open_service(
                InstanceAdminClient, InstanceAdminGrpcTransport, self, self.credentials
            )
        return self._instance_admin_api

    @property
    def database_admin_api(self) -> DatabaseAdminClient:
        """Calls for databases: their DDL, and operations."""
        if self._database_admin_api is None:
            self._database_admin_api = open_service(
                BoundedDatabaseAdmin, DatabaseAdminGrpcTransport, self, self.credentials
            )
        return self._database_admin_api
