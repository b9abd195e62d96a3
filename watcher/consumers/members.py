"""The instances that share a consumer: who is alive, and which parts each is to hold (rule 12 of
docs/protocol.md)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from google.cloud.spanner_v1 import KeySet, param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction

from watcher.consumers.positions.own_names import members_table
from watcher.consumers.positions.rows import StoredRows
from watcher.model.errors import ConfigurationError
from watcher.spanner.dialects import SqlDialect, Values, find_dialect
from watcher.spanner.transactions import run_optimistically
from watcher.tables.parts import Part

UNSET = "not set"


class Members:
    """The table ``...Members``. It decides who takes which part, and nothing else: that two do not
    deliver one part is held by the lease of the part.

    ``settings`` are those that all instances must have in common, as JSON by name.
    """

    def __init__(
        self,
        database: Database,
        positions_table: str,
        shared: str,
        parts: int,
        settings: Mapping[str, str],
    ) -> None:
        self._database = database
        self._positions = positions_table
        self._name = members_table(positions_table)
        self._shared = shared
        self._parts = parts
        self._settings = settings

    @property
    def _sql(self) -> SqlDialect:
        return find_dialect(self._database)

    def renew(self, member: str, seconds: float) -> tuple[str, ...]:
        """Says that an instance is alive for so many seconds more; who else is, in their order.
        Instances that are gone are removed. Raises DivisionChangedError when the consumer is not
        divided into these parts any more, and ConfigurationError where an instance that is alive
        has other settings than this one, which joins it."""
        q, sql = self._sql.quote, self._sql
        values: Values = {
            "consumer": (self._shared, param_types.STRING),
            "member": (member, param_types.STRING),
            "milliseconds": (round(seconds * 1000), param_types.INT64),
            "settings": (json.dumps(dict(self._settings)), param_types.STRING),
        }
        columns = ("Consumer", "Member", "LeaseUntil", "Settings")
        until = sql.add_milliseconds("CURRENT_TIMESTAMP", "@milliseconds")
        ours = f"{q('Consumer')} = @consumer"
        extend = (
            f"UPDATE {q(self._name)} SET {q('LeaseUntil')} = {until}"  # noqa: S608 (quoted)
            f" WHERE {ours} AND {q('Member')} = @member"
        )
        join = (
            f"INSERT INTO {q(self._name)} ({sql.quote_all(columns)})"  # noqa: S608 (quoted)
            f" VALUES (@consumer, @member, {until}, @settings)"
        )
        show = (
            f"SELECT {q('Member')}, {q('LeaseUntil')} > CURRENT_TIMESTAMP, {q('Settings')}"  # noqa: S608
            f" FROM {q(self._name)} WHERE {ours} ORDER BY {q('Member')}"
        )
        of_consumer: Values = {"consumer": values["consumer"]}
        known: Values = {name: each for name, each in values.items() if name != "settings"}

        def write(transaction: Transaction) -> tuple[str, ...]:
            stored = StoredRows(transaction, self._positions, sql)
            stored.check_divided(self._shared, self._parts)
            joins = not transaction.execute_update(*sql.bind(extend, known))
            if joins:
                transaction.execute_update(*sql.bind(join, values))
            rows = list(transaction.execute_sql(*sql.bind(show, of_consumer)))
            if joins:
                self._check_settings([each for _, alive, each in rows if alive])
            gone = [[self._shared, name] for name, alive, _ in rows if not alive]
            if gone:
                transaction.delete(self._name, KeySet(keys=gone))
            return tuple(name for name, alive, _ in rows if alive)

        return run_optimistically(self._database, write)

    def _check_settings(self, stored: Iterable[str | None]) -> None:
        """Compares the settings with those of instances; earlier releases stored none."""
        for each in stored:
            differences = "; ".join(list_differences(self._settings, json.loads(each or "null")))
            if differences:
                raise ConfigurationError(
                    f"another instance of consumer '{self._shared}' runs with other settings:"
                    f" {differences}; start all of them with the same ones, and stop them all to"
                    " change one"
                )

    def leave(self, member: str) -> None:
        """An instance ends: the others need not wait for its time to run out."""
        with self._database.batch() as batch:
            batch.delete(self._name, KeySet(keys=[[self._shared, member]]))


def list_differences(ours: Mapping[str, str], others: Mapping[str, str] | None) -> Iterator[str]:
    """Each setting that is not the same, with both values; none where the others are not known."""
    if others is None:
        return
    for name in sorted(ours.keys() | others.keys()):
        here, there = ours.get(name, UNSET), others.get(name, UNSET)
        if here != there:
            yield f"'{name}' is {here} here and {there} there"


@dataclass(frozen=True, slots=True)
class Shift:
    """The parts that an instance gives back, and those that it tries to take."""

    give_back: tuple[Part, ...] = ()
    take: tuple[Part, ...] = ()


def count_share(parts: int, members: Sequence[str], member: str) -> int:
    """How many parts are an instance's share. The shares of all ``members`` together are all
    parts; they differ by one at most. None of them is that of an instance that is not one of the
    members."""
    if member not in members:
        return 0
    least, more = divmod(parts, len(members))
    return least + (members.index(member) < more)


def plan_shift(held: Collection[Part], free: Collection[Part], share: int, first: int = 0) -> Shift:
    """What brings an instance nearer to its share. ``free`` are parts that nobody holds; instances
    begin at different ones of them, ``first``, so that few of them ask for the same one."""
    if len(held) >= share:
        return Shift(give_back=tuple(sorted(held)[share:]))
    ordered = sorted(free)
    start = first % len(ordered) if ordered else 0
    return Shift(take=tuple((ordered[start:] + ordered[:start])[: share - len(held)]))
