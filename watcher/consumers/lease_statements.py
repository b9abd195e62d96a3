"""The statements that take, renew and look at a consumer's name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from watcher.consumers.positions.fences import is_alive
from watcher.spanner.dialects import SqlDialect


@dataclass(frozen=True, slots=True)
class LeaseStatements:
    """Of a table of leases, in the dialect of its database."""

    sql: SqlDialect
    table: str

    @property
    def holder(self) -> str:
        """Whether a consumer's name is held, by whom, and what is stored with it."""
        q = self.sql.quote
        return (
            f"SELECT {is_alive(self.sql)},"  # noqa: S608 (quoted)
            f" {self.sql.quote_all(('Owner', 'Command', 'Reason'))} FROM {q(self.table)}"
            f" WHERE {q('Consumer')} = @consumer"
        )

    @property
    def take(self) -> str:
        """The statement that gives a known consumer's name to an owner, with the lease at once."""
        changes = {
            "State": "@state",
            "Reason": "NULL",
            "Owner": "@owner",
            "LeaseUntil": self.lease_until,
            "UpdatedAt": self.sql.commit_timestamp,
        }
        return self._render_update(changes, ("Consumer",))

    @property
    def insert(self) -> str:
        """As ``take``, for a consumer that is new."""
        columns = ("Consumer", "State", "Owner", "LeaseUntil", "UpdatedAt")
        return (
            f"INSERT INTO {self.sql.quote(self.table)}"  # noqa: S608 (quoted)
            f" ({self.sql.quote_all(columns)})"
            f" VALUES (@consumer, @state, @owner, {self.lease_until},"
            f" {self.sql.commit_timestamp})"
        )

    @property
    def renew(self) -> str:
        """The statement that renews or releases a lease; no row when it is another's."""
        command = self.sql.quote("Command")
        changes = {
            "State": "@state",
            "Reason": "@reason",
            "Owner": "@next_owner",
            "LeaseUntil": self.lease_until,
            "Command": f"NULLIF({command}, @obeyed)",
            "Windows": "@windows",
            "DeliveredRows": "@rows",
            "RowsPerSecond": "@rate",
            "DeadLetters": "@dead",
            "UpdatedAt": self.sql.commit_timestamp,
        }
        update = self._render_update(changes, ("Consumer", "Owner"))
        return f"{update} {self.sql.returning(command)}"

    @property
    def lease_until(self) -> str:
        """When a lease ends that is taken or renewed now."""
        return self.sql.add_milliseconds("CURRENT_TIMESTAMP", "@milliseconds")

    def _render_update(self, changes: Mapping[str, str], keys: Sequence[str]) -> str:
        """An UPDATE of the rows that have the parameters named as ``keys``."""
        q = self.sql.quote
        assigned = ", ".join(f"{q(name)} = {value}" for name, value in changes.items())
        condition = " AND ".join(f"{q(key)} = @{key.lower()}" for key in keys)
        return f"UPDATE {q(self.table)} SET {assigned} WHERE {condition}"  # noqa: S608 (quoted)
