"""How the rows of a copy lie in its files: partitions, order within a file, size of files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pydantic import ConfigDict

from watcher.model.errors import ConfigurationError, ReplicaError

if TYPE_CHECKING:
    import pyarrow as pa

IDENTITY, BUCKET, TRUNCATE = "identity", "bucket", "truncate"
TIMES = ("year", "month", "day", "hour")
NUMBERED = (BUCKET, TRUNCATE)
ALL = (IDENTITY, *TIMES, *NUMBERED)
FIELD = re.compile(
    rf"(?P<time>{'|'.join(TIMES)})\((?P<of>[^()]+)\)"
    rf"|(?P<kind>{'|'.join(NUMBERED)})\(\s*(?P<number>[1-9]\d{{0,8}})\s*,(?P<column>[^()]+)\)"
    r"|(?P<whole>[^()]+)"
)
FILE_MEGABYTES = 256
"""As large as files become, about, by loads and compaction: a merge writes two actions into the log
for each file that it takes rows of."""
WHOLE = ("int64", "string", "bool", "date32[day]")
"""Types that partition by their values: NULL is a partition, too. The values of others are too
many, or not equal to themselves."""
TYPES: Mapping[str, tuple[str, ...]] = {
    IDENTITY: WHOLE,
    **dict.fromkeys(("year", "month", "day"), ("date32[day]", "timestamp[us, tz=UTC]")),
    "hour": ("timestamp[us, tz=UTC]",),
    BUCKET: ("int64", "string", "binary", "date32[day]", "timestamp[us, tz=UTC]"),
    TRUNCATE: ("int64", "string"),
}
SORTED = (*WHOLE, "timestamp[us, tz=UTC]", "binary", "decimal128(38, 9)")
"""Types of columns that rows are sorted by."""


@dataclass(frozen=True, slots=True)
class PartitionField:
    """A column whose values, or what ``transform`` makes of them, are the same in all rows of a
    file. ``number``: how many buckets, or how much is kept."""

    column: str
    transform: str = IDENTITY
    number: int | None = None

    @classmethod
    def parse(cls, text: str) -> PartitionField:
        """As it is written: ``Region``, ``day(CreatedAt)``, ``bucket(16, Id)``. Raises
        ConfigurationError."""
        found = FIELD.fullmatch(text.strip())
        if found is None:
            raise ConfigurationError(
                f"invalid partition '{text}': write COLUMN, year(COLUMN), month(COLUMN),"
                " day(COLUMN), hour(COLUMN), bucket(NUMBER, COLUMN) or truncate(NUMBER, COLUMN)"
            )
        if found["whole"]:
            return cls(found["whole"].strip())
        if found["time"]:
            return cls(found["of"].strip(), found["time"])
        return cls(found["column"].strip(), found["kind"], int(found["number"]))

    def __str__(self) -> str:
        if self.transform == IDENTITY:
            return self.column
        number = "" if self.number is None else f"{self.number}, "
        return f"{self.transform}({number}{self.column})"


@dataclass(frozen=True, slots=True)
class Layout:
    """How the rows of one copy lie in its files."""

    __pydantic_config__: ClassVar[ConfigDict] = {"extra": "forbid"}

    partition_by: tuple[str, ...] = ()
    """Each file has the rows of one partition: a column, or, in Iceberg, ``year``, ``month``,
    ``day`` or ``hour`` of one, ``bucket(16, COLUMN)`` or ``truncate(4, COLUMN)``. It is fixed when
    a copy is made; a table without a layout keeps what its copy has."""
    sort_by: tuple[str, ...] = ()
    """The rows of a file are in the order of these columns, NULL last. Not for Delta by Spark, or
    with ``merge = "copy-on-write"``."""
    file_megabytes: int = FILE_MEGABYTES
    """The size of files that loads and compaction write, in MB. Of rows that are sorted or
    partitioned without Spark so much is held in memory, and is smaller in the file. With Spark for
    Iceberg alone."""

    @property
    def fields(self) -> tuple[PartitionField, ...]:
        """The partitions. Raises ConfigurationError."""
        return tuple(map(PartitionField.parse, self.partition_by))

    @property
    def is_arranged(self) -> bool:
        """Whether rows are not written in the order in which they come."""
        return bool(self.partition_by or self.sort_by)

    @property
    def file_bytes(self) -> int:
        """The size of files."""
        return self.file_megabytes << 20

    def check(self, table: str) -> None:
        """Raises ConfigurationError for what is wrong in any format."""
        if self.file_megabytes < 1:
            raise ConfigurationError(f"{name_option(table, 'file_megabytes')} must be at least 1")
        listed = {"partition_by": [str(each) for each in self.fields], "sort_by": self.sort_by}
        for option, names in listed.items():
            lower = [name.casefold() for name in names]
            if len(set(lower)) < len(lower):
                raise ConfigurationError(f"{name_option(table, option)} names a column twice")

    def fit(self, table: str, schema: pa.Schema) -> Layout:
        """The same with the names of columns as a table spells them. Raises ConfigurationError for
        columns that it does not have, or of types that cannot be partitioned or sorted by."""
        spelled = {name.casefold(): name for name in schema.names}
        parts = []
        for each in self.fields:
            option = name_option(table, "partition_by")
            name = find_column(each.column, spelled, option)
            check_type(name, schema, TYPES[each.transform], f"{option} by {each.transform}")
            parts.append(str(PartitionField(name, each.transform, each.number)))
        option = name_option(table, "sort_by")
        sorts = [find_column(name, spelled, option) for name in self.sort_by]
        for name in sorts:
            check_type(name, schema, SORTED, option)
        return Layout(tuple(parts), tuple(sorts), self.file_megabytes)


PLAIN = Layout()
Layouts = Mapping[str, Layout]
"""The layouts that are stated, by the names of their tables. Copies of other tables stay as they
are, and new ones are ``PLAIN``."""


@dataclass(frozen=True, slots=True)
class LayoutSupport:
    """What a writer can do: ``transforms`` of partitions (none: no partitions), ``sorts`` rows of a
    file, ``sizes`` files. ``advice``: what to do instead of what it cannot."""

    advice: str
    transforms: tuple[str, ...] = ()
    sorts: bool = False
    sizes: bool = False

    def check(self, writer: str, layouts: Layouts) -> None:
        """Raises ConfigurationError for what it cannot do."""
        for table, layout in layouts.items():
            layout.check(table)
            for each in layout.fields:
                if each.transform not in self.transforms:
                    self._refuse(writer, table, "partition_by", str(each))
            if layout.sort_by and not self.sorts:
                self._refuse(writer, table, "sort_by", ", ".join(layout.sort_by))
            if layout.file_megabytes != FILE_MEGABYTES and not self.sizes:
                self._refuse(writer, table, "file_megabytes", str(layout.file_megabytes))

    def _refuse(self, writer: str, table: str, option: str, value: str) -> None:
        raise ConfigurationError(
            f"{name_option(table, option)} = '{value}' is not for {writer}: remove it, or"
            f" {self.advice}"
        )


def find_layout(layouts: Layouts, table: str) -> Layout | None:
    """The layout that is stated of a table, whose name ignores case."""
    wanted = table.casefold()
    return next((each for name, each in layouts.items() if name.casefold() == wanted), None)


def check_tables(layouts: Layouts, tables: Collection[str]) -> None:
    """Raises ConfigurationError for layouts of tables that are not copied."""
    known = {name.casefold() for name in tables}
    for name in layouts:
        if name.casefold() not in known:
            raise ConfigurationError(
                f"[replica.layout.{name}] is of a table that is not replicated: use"
                f" {' or '.join(sorted(tables))}, or remove it"
            )


def check_partitions(copy: str, there: Sequence[str], wanted: Iterable[str]) -> None:
    """Raises ConfigurationError for a copy that was made with other partitions."""
    asked = list(wanted)
    if list(there) != asked:
        made = f"partition_by = {list(there)}" if there else "no partitions"
        raise ConfigurationError(
            f"{copy} was made with {made}, which is fixed: use that, remove the layout of its"
            " table, which keeps what is there, or use another folder for"
            f" {f'partition_by = {asked}' if asked else 'a copy without partitions'}"
        )


def check_kept(layout: Layout, columns: Collection[str], copy: str) -> None:
    """Raises ReplicaError where a table that is loaded has lost a column of its layout."""
    named = (*(each.column for each in layout.fields), *layout.sort_by)
    if gone := [name for name in named if name not in columns]:
        raise ReplicaError(
            f"{copy} is partitioned or sorted by {', '.join(gone)}, which its table has no more:"
            " use another folder, with another layout"
        )


def find_column(name: str, spelled: Mapping[str, str], option: str) -> str:
    """A column as the table spells it."""
    if name.casefold() not in spelled:
        raise ConfigurationError(
            f"{option} names column {name}, which its copy does not have: use one of"
            f" {', '.join(spelled.values())}"
        )
    return spelled[name.casefold()]


def check_type(name: str, schema: pa.Schema, allowed: Sequence[str], what: str) -> None:
    """Raises ConfigurationError for a column of another type."""
    type_ = str(schema.field(name).type)
    if type_ not in allowed:
        raise ConfigurationError(
            f"{what} cannot use column {name}, whose copy has the type {type_}: use a column of"
            f" {' or '.join(allowed)}"
        )


def name_option(table: str, option: str) -> str:
    """How messages name an option."""
    return f"[replica.layout.{table}] {option}"
