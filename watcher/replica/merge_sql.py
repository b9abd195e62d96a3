"""The SQL of a merge: names and conditions, as the engines that write copies take them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from watcher.replica.copies import DELETED_COLUMN, find_stamp
from watcher.replica.cuts.modes import HISTORY, VALID_FROM, VALID_TO, find_mode
from watcher.spanner.sql import all_of, any_of

SOURCE, TARGET = "s", "t"
"""The rows of a window, and the copy. A column may have such a name too: it is always qualified."""


@dataclass(frozen=True, slots=True)
class MergeSql:
    """How an engine writes it. ``mark`` quotes names, and is doubled within them; ``same`` compares
    values so that NULL equals NULL. In both engines NaN equals NaN, and 0.0 equals -0.0, as they do
    in Spanner's keys."""

    mark: str
    same: str

    def quote(self, name: str, alias: str = "") -> str:
        """A name, whatever characters it has."""
        quoted = f"{self.mark}{name.replace(self.mark, self.mark * 2)}{self.mark}"
        return f"{alias}.{quoted}" if alias else quoted

    def match_keys(self, key: Sequence[str]) -> str:
        """Whether rows have the same key."""
        return all_of(
            f"({self.quote(name, TARGET)}) {self.same} ({self.quote(name, SOURCE)})" for name in key
        )

    def is_newer(self, stamp: str) -> str:
        """Whether a row is newer than that of its key. Comparing with NULL is never true: a row
        that was loaded without a timestamp would stay for ever."""
        source, target = (self.quote(stamp, each) for each in (SOURCE, TARGET))
        return any_of((f"{target} IS NULL", f"{source} > {target}"))

    @property
    def is_removed(self) -> str:
        """The row of the window is a delete."""
        return self.quote(DELETED_COLUMN, SOURCE)

    @property
    def inserts(self) -> str:
        """The condition for rows whose key the copy does not have."""
        return f"NOT ({self.is_removed})"

    def updates(self, stamp: str) -> str:
        """The condition for rows that replace one."""
        return all_of((self.inserts, self.is_newer(stamp)))

    def deletes(self, stamp: str) -> str:
        """The condition for rows that remove one."""
        return all_of((self.is_removed, self.is_newer(stamp)))

    def assign(self, columns: Iterable[str], alias: str = "") -> Mapping[str, str]:
        """The columns of the copy, quoted, and the values that they get."""
        names = [name for name in columns if name != DELETED_COLUMN]
        return {self.quote(name, alias): self.quote(name, SOURCE) for name in names}


DATAFUSION = MergeSql('"', "IS NOT DISTINCT FROM")
"""delta-rs, whose parser gives AND in front of IS NOT DISTINCT FROM to the operand, and which is
case-sensitive within quotes. It makes a hash join of this comparison, as of ``=``."""
SPARK = MergeSql("`", "<=>")


def render_spark_merge(table: str, source: str, columns: Sequence[str], key: Sequence[str]) -> str:
    """The MERGE of a window's rows, in Spark. ``table`` and ``source`` are quoted."""
    changes = ", ".join(f"{own} = {new}" for own, new in SPARK.assign(columns, TARGET).items())
    inserted, stamp = SPARK.assign(columns), find_stamp(columns)
    clauses = (
        f"MERGE INTO {table} AS {TARGET} USING {source} AS {SOURCE} ON {SPARK.match_keys(key)}",
        f"WHEN MATCHED AND ({SPARK.deletes(stamp)}) THEN DELETE",
        f"WHEN MATCHED AND ({SPARK.updates(stamp)}) THEN UPDATE SET {changes}",
        f"WHEN NOT MATCHED AND ({SPARK.inserts}) THEN INSERT ({', '.join(inserted)})"  # noqa: S608 (names are quoted)
        f" VALUES ({', '.join(inserted.values())})",
    )
    return " ".join(clauses)


def render_kept_merge(table: str, source: str, columns: Sequence[str], key: Sequence[str]) -> str:
    """The MERGE, in Spark, of rows as a copy is to have them that keeps more than the latest ones.
    Of a history, a version that ends comes in the place of the one that was current."""
    changes = ", ".join(f"{own} = {new}" for own, new in SPARK.assign(columns, TARGET).items())
    inserted, same = SPARK.assign(columns), [SPARK.match_keys(key)]
    if find_mode(columns) == HISTORY:
        same += [SPARK.match_keys([VALID_FROM]), f"{SPARK.quote(VALID_TO, TARGET)} IS NULL"]
    clauses = (
        f"MERGE INTO {table} AS {TARGET} USING {source} AS {SOURCE} ON {all_of(same)}",
        f"WHEN MATCHED THEN UPDATE SET {changes}",
        f"WHEN NOT MATCHED THEN INSERT ({', '.join(inserted)})"  # noqa: S608 (names are quoted)
        f" VALUES ({', '.join(inserted.values())})",
    )
    return " ".join(clauses)


def render_removal(table: str, source: str, key: Sequence[str]) -> str:
    """The MERGE, in Spark, that removes the rows of some keys."""
    both, same = f"{table} AS {TARGET} USING {source} AS {SOURCE}", SPARK.match_keys(key)
    return f"MERGE INTO {both} ON {same} WHEN MATCHED THEN DELETE"
