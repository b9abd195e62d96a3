"""The instances that share a consumer: who is alive."""

from __future__ import annotations

from google.cloud.spanner_v1 import KeySet, param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from watcher.consumers.positions.fences import check_divided
from watcher.consumers.positions.own_names import members_table
from watcher.spanner.dialects import SqlDialect, Values, find_dialect
from watcher.spanner.transactions import run_optimistically


class Members:
    """The table ``...Members``. It decides who takes which part, and nothing else: that two do not
    deliver one part is held by the lease of the part."""

    def __init__(self, database: Database, positions_table: str, shared: str, parts: int) -> None:
        self._database = database
        self._positions = positions_table
        self._name = members_table(positions_table)
        self._shared = shared
        self._parts = parts

    @property
    def _sql(self) -> SqlDialect:
        return find_dialect(self._database)

    def renew(self, member: str, seconds: float) -> tuple[str, ...]:
        """Says that an instance is alive for so many seconds more; who else is, in their order.
        Instances that are gone are removed. Raises DivisionChangedError when the consumer is not
        divided into these parts any more."""
        q, sql = self._sql.quote, self._sql
        values: Values = {
            "consumer": (self._shared, param_types.STRING),
            "member": (member, param_types.STRING),
            "milliseconds": (round(seconds * 1000), param_types.INT64),
        }
        until = sql.add_milliseconds("CURRENT_TIMESTAMP", "@milliseconds")
        ours = f"{q('Consumer')} = @consumer"
        extend = (
            f"UPDATE {q(self._name)} SET {q('LeaseUntil')} = {until}"  # noqa: S608 (quoted)
            f" WHERE {ours} AND {q('Member')} = @member"
        )
        join = (
            f"INSERT INTO {q(self._name)} ({sql.quote_all(('Consumer', 'Member', 'LeaseUntil'))})"  # noqa: S608
            f" VALUES (@consumer, @member, {until})"
        )
        show = (
            f"SELECT {q('Member')}, {q('LeaseUntil')} > CURRENT_TIMESTAMP FROM {q(self._name)}"  # noqa: S608
            f" WHERE {ours} ORDER BY {q('Member')}"
        )
        of_consumer: Values = {"consumer": values["consumer"]}

        def write(transaction: Transaction) -> tuple[str, ...]:
            check_divided(transaction, self._positions, self._shared, self._parts, sql)
            if not transaction.execute_update(*sql.bind(extend, values)):
                transaction.execute_update(*sql.bind(join, values))
            rows = list(transaction.execute_sql(*sql.bind(show, of_consumer)))
            gone = [[self._shared, name] for name, alive in rows if not alive]
            if gone:
                transaction.delete(self._name, KeySet(keys=gone))
            return tuple(name for name, alive in rows if alive)

        return run_optimistically(self._database, write)

    def leave(self, member: str) -> None:
        """An instance ends: the others need not wait for its time to run out."""
        with self._database.batch() as batch:
            batch.delete(self._name, KeySet(keys=[[self._shared, member]]))
