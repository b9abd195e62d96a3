"""Schema updates that run in Spanner, whoever began them: how far they are."""

from __future__ import annotations

from dataclasses import dataclass

from google.api_core.exceptions import Forbidden, MethodNotImplemented
from google.cloud.spanner_admin_database_v1 import (
    ListDatabaseOperationsRequest,
    UpdateDatabaseDdlMetadata,
)
from google.cloud.spanner_v1.database import Database

METADATA = "type.googleapis.com/google.spanner.admin.database.v1.UpdateDatabaseDdlMetadata"


@dataclass(frozen=True, slots=True)
class SchemaUpdate:
    """How far the statements of a schema update are.

    ``done`` of them are committed; the next one has done ``percent`` of its work. ``throttled``:
    Spanner slows it down, as the instance has other work.
    """

    operation: str
    statements: tuple[str, ...]
    done: int = 0
    percent: int = 0
    throttled: bool = False

    def describe(self) -> str:
        """How far it is, in words."""
        if self.done >= len(self.statements):
            return "every statement is done"
        slow = ", throttled by Spanner" if self.throttled else ""
        return f"statement {self.done + 1} of {len(self.statements)}: {self.percent} %{slow}"


def read_update(operation: str, metadata: UpdateDatabaseDdlMetadata) -> SchemaUpdate:
    """A schema update from the metadata of its operation."""
    done = len(metadata.commit_timestamps)
    percents = [each.progress_percent for each in metadata.progress]
    percent = percents[done] if done < len(percents) else 0
    return SchemaUpdate(operation, tuple(metadata.statements), done, percent, metadata.throttled)


def list_running_updates(database: Database) -> list[SchemaUpdate]:
    """The schema updates of a database that have not ended. Raises Forbidden for who may not list
    them (``spanner.databaseOperations.list``)."""
    instance = database.name.partition("/databases/")[0]
    prefix = f"{database.name}/operations/"
    request = ListDatabaseOperationsRequest(
        parent=instance, filter=f"(metadata.@type={METADATA}) AND (name:{prefix})"
    )
    api = database._instance._client.database_admin_api
    return [
        read_update(each.name, UpdateDatabaseDdlMetadata.deserialize(each.metadata.value))
        for each in api.list_database_operations(request=request)
        if not each.done and each.name.startswith(prefix) and each.metadata.type_url == METADATA
    ]


def find_running_updates(database: Database) -> list[SchemaUpdate]:
    """As ``list_running_updates``; none for who may not list them."""
    try:
        return list_running_updates(database)
    except (Forbidden, MethodNotImplemented):
        return []
