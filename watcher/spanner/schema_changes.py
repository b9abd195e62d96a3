"""What has changed a database lately, by its operations: DDL statements, and a restore. The only
questions to the admin API: a watcher asks once when it starts, a replicator also every minute."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cache

from google.api_core.exceptions import Forbidden, MethodNotImplemented
from google.cloud.spanner_admin_database_v1 import (
    ListDatabaseOperationsRequest,
    RestoreDatabaseMetadata,
    UpdateDatabaseDdlMetadata,
)

from watcher.model.log_events.reading import OPERATIONS_UNREADABLE
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import CHECK_SECONDS_MAX, open_client
from watcher.spanner.timestamps import to_micros

LOG = logging.getLogger("watcher.spanner")
TYPES = "type.googleapis.com/google.spanner.admin.database.v1."
METADATA = f"{TYPES}UpdateDatabaseDdlMetadata"
RESTORE = f"{TYPES}RestoreDatabaseMetadata"


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A DDL statement and its commit timestamp, in microseconds since 1970."""

    committed_at: int
    statement: str


@cache
def warn_once(database: str, message: str) -> None:
    """Says that nobody may list what has changed a database."""
    OPERATIONS_UNREADABLE.log(LOG, database=database, error=message)


def read_schema_changes(address: DatabaseAddress, since: int) -> list[SchemaChange]:
    """The statements after a commit timestamp, in their order, of the last seven days: so long
    Spanner lists operations. Empty, with a warning, for who may not list them.

    Raises GoogleAPICallError after seconds where the server does not answer.
    """
    # assumes: schema-changes-listed
    listed = list_metadata(address, METADATA)
    updates = map(UpdateDatabaseDdlMetadata.deserialize, listed)
    changes = [
        SchemaChange(to_micros(committed_at), statement)
        for update in updates
        if update.database == address.path
        for statement, committed_at in zip(update.statements, update.commit_timestamps)  # noqa: B905
    ]
    return sorted((c for c in changes if c.committed_at > since), key=lambda c: c.committed_at)


def read_restored_at(address: DatabaseAddress) -> int:
    """When the database was made of a backup, in microseconds since 1970, if that was in the last
    seven days; else 0, and also, with a warning, for who may not list operations.

    Raises GoogleAPICallError after seconds where the server does not answer.
    """
    restores = map(RestoreDatabaseMetadata.deserialize, list_metadata(address, RESTORE))
    times = [each.progress.start_time for each in restores if each.name == address.path]
    return max((to_micros(time) for time in times if time is not None), default=0)


def list_metadata(address: DatabaseAddress, kind: str) -> list[bytes]:
    """The metadata of the operations of one kind of a database."""
    client = open_client(address)
    instance = address.path.partition("/databases/")[0]
    request = ListDatabaseOperationsRequest(
        parent=instance, filter=f"(metadata.@type={kind}) AND (name:{address.path}/operations/)"
    )
    try:
        operations = list(
            client.database_admin_api.list_database_operations(
                request=request, timeout=CHECK_SECONDS_MAX, retry=None
            )
        )
    except (Forbidden, MethodNotImplemented) as error:
        warn_once(address.path, error.message)
        return []
    return [each.metadata.value for each in operations if each.metadata.type_url == kind]
