"""Locality groups: what CREATE and ALTER LOCALITY GROUP say. A schema keeps them as text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from spanner_schema.model.schema import Dialect, Schema
from spanner_schema.syntax.clauses import read_option_list, read_verbatim_name
from spanner_schema.syntax.reader import TokenReader
from spanner_schema.syntax.render import SPELLINGS
from spanner_schema.syntax.tokens import TokenKind

KIND = "LOCALITY GROUP"
ALTER = f"ALTER {KIND}"
DEFAULT = "default"
"""The group of what names none: it is always there, and may be altered."""
STORAGE, TIMESPAN = "storage", "ssd_to_hdd_spill_timespan"


@dataclass(frozen=True, slots=True)
class LocalityGroup:
    """A locality group; ``options`` as they are written. ``optional`` says IF [NOT] EXISTS."""

    name: str
    options: tuple[tuple[str, str], ...] = ()
    optional: bool = False
    dialect: Dialect = Dialect.GOOGLESQL

    @property
    def text(self) -> str:
        """The statement that makes the group what it is: an ALTER of the default one."""
        is_default = self.name.casefold() == DEFAULT
        name = SPELLINGS[self.dialect].quote_name(self.name)
        text = f"{'ALTER' if is_default else 'CREATE'} {KIND} {name}"
        if not self.options:
            return text
        if self.dialect is Dialect.POSTGRESQL:
            return f"{text} {', '.join(f'{n.upper()} {value}' for n, value in self.options)}"
        pairs = ", ".join(f"{name} = {value}" for name, value in self.options)
        return f"{text}{' SET' if is_default else ''} OPTIONS ({pairs})"


@lru_cache(maxsize=1_000)
def read_locality_group(text: str, dialect: Dialect = Dialect.GOOGLESQL) -> LocalityGroup:
    """Reads a whole CREATE or ALTER LOCALITY GROUP statement. Raises DdlSyntaxError."""
    reader = TokenReader(text, dialect)
    alters = reader.accept("ALTER")
    if not alters:
        reader.expect("CREATE")
    reader.expect("LOCALITY", "GROUP")
    optional = reader.accept("IF", *(() if alters else ("NOT",)), "EXISTS")
    name = read_verbatim_name(reader, KIND)
    options = read_storage(reader, alters=alters)
    reader.accept(";")
    reader.expect_end()
    return LocalityGroup(name, options, optional, dialect)


def read_storage(reader: TokenReader, *, alters: bool) -> tuple[tuple[str, str], ...]:
    """[SET] OPTIONS (...); in PostgreSQL STORAGE 'ssd' [,] SSD_TO_HDD_SPILL_TIMESPAN '10d'."""
    if reader.dialect is Dialect.GOOGLESQL:
        if alters and reader.accept("SET") and not reader.peek("OPTIONS"):
            reader.fail("OPTIONS")
        return read_option_list(reader) if reader.accept("OPTIONS") else ()
    options: list[tuple[str, str]] = []
    while not reader.peek(";") and reader.token.kind is not TokenKind.END:
        name = reader.read_name("an option")
        if reader.token.kind is not TokenKind.STRING and not reader.peek("NULL"):
            reader.fail("a value in quotes")
        options.append((name, reader.advance().text))
        reader.accept(",")
    return tuple(options)


def alter_locality_group(group: LocalityGroup, change: LocalityGroup) -> LocalityGroup:
    """The group after an ALTER: null removes an option."""
    options = dict(group.options) | dict(change.options)
    kept = tuple((name, value) for name, value in options.items() if value.upper() != "NULL")
    return replace(group, options=kept, optional=False)


def list_locality_groups(schema: Schema) -> list[LocalityGroup]:
    """Those of a schema; the default one only if it was altered."""
    return [
        read_locality_group(item.text, schema.dialect)
        for item in schema.verbatim
        if item.kind == KIND
    ]
