"""What reads the product's own tables: a snapshot or a read-write transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol


class RowReader(Protocol):
    """What the client's ``Snapshot`` and ``Transaction`` have in common."""

    def execute_sql(
        self,
        sql: str,
        params: Mapping[str, Any] | None = None,
        param_types: Mapping[str, Any] | None = None,
    ) -> Iterable[Any]:
        """The rows of a query."""
        ...
