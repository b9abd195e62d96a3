"""Which DDL statements have changed a database lately: the only question to the admin API that a
watcher asks, once when it starts."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from google.api_core.exceptions import Forbidden, MethodNotImplemented
from google.cloud.spanner_admin_database_v1 import (
    ListDatabaseOperationsRequest,
    UpdateDatabaseDdlMetadata,
)

from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import CHECK_SECONDS_MAX, open_client
from watcher.spanner.timestamps import to_micros

LOG = logging.getLogger("watcher.spanner")
METADATA = "type.googleapis.com/google.spanner.admin.database.v1.UpdateDatabaseDdlMetadata"


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A DDL statement and its commit timestamp, in microseconds since 1970."""

    committed_at: int
    statement: str


def read_schema_changes(address: DatabaseAddress, since: int) -> list[SchemaChange]:
    """The statements after a commit timestamp, in their order, of the last seven days: so long
    Spanner lists operations. Empty, with a warning, for who may not list them.

    Raises GoogleAPICallError after seconds where the server does not answer.
    """
    # assumes: schema-changes-listed
    client = open_client(address)
    instance = address.path.partition("/databases/")[0]
    request = ListDatabaseOperationsRequest(
        parent=instance, filter=f"(metadata.@type={METADATA}) AND (name:{address.path}/operations/)"
    )
    try:
        operations = list(
            client.database_admin_api.list_database_operations(
                request=request, timeout=CHECK_SECONDS_MAX, retry=None
            )
        )
    except (Forbidden, MethodNotImplemented) as error:
        LOG.warning(
            "tables that were dropped and created again cannot be told from those before: grant"
            " spanner.databaseOperations.list (%s)",
            error.message,
        )
        return []
    updates = (
        UpdateDatabaseDdlMetadata.deserialize(each.metadata.value)
        for each in operations
        if each.metadata.type_url == METADATA
    )
    changes = [
        SchemaChange(to_micros(committed_at), statement)
        for update in updates
        if update.database == address.path
        for statement, committed_at in zip(update.statements, update.commit_timestamps)  # noqa: B905
    ]
    return sorted((c for c in changes if c.committed_at > since), key=lambda c: c.committed_at)
