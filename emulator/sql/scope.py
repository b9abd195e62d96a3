"""What names mean while a statement is compiled: relations in scope, parameters, WITH queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from sqlglot import exp

from emulator import errors
from emulator.sql.statements import Bindings, TableSource
from emulator.sql.types import Typed, distinct_names, drop_length
from emulator.values.protos import ProtoTypes, types_of
from emulator.values.requests import ResultColumn
from emulator.values.sqlite_text import quote_name, quote_text
from emulator.values.types import INT64, STRING, array
from spanner_schema.model.column_types import Type
from spanner_schema.model.schema import Dialect, Schema, Table


@dataclass(frozen=True, slots=True)
class Relation:
    """Something in a FROM clause.

    ``columns`` carry the names that the query gives them (empty or repeated ones too). ``value`` is
    set where the alias is a value of its own: the element of UNNEST, the row of a value table.
    ``qualified`` are columns that only alias.column names.
    """

    alias: str
    columns: tuple[Typed, ...]
    value: Typed | None = None
    hidden: frozenset[str] = frozenset()
    qualified: tuple[Typed, ...] = ()

    @classmethod
    def of(
        cls,
        alias: str,
        columns: tuple[tuple[str, Type], ...],
        hidden: frozenset[str] = frozenset(),
    ) -> Relation:
        """A relation whose columns SQLite calls by their names."""
        texts = distinct_names([name for name, _ in columns])
        listed = [
            Typed(f"{quote_name(alias)}.{quote_name(text)}", drop_length(type_), column=name)
            for text, (name, type_) in zip(texts, columns, strict=True)
        ]
        return cls(alias, tuple(listed), hidden=hidden)

    def columns_named(self, name: str) -> list[Typed]:
        """The columns of this name."""
        folded = name.casefold()
        return [column for column in self.columns if column.column.casefold() == folded]

    def list_columns(self, name: str) -> list[Typed]:
        """The columns that alias.name may mean."""
        folded = name.casefold()
        return self.columns_named(name) + [
            c for c in self.qualified if c.column.casefold() == folded
        ]

    def owns(self, column: Typed) -> bool:
        """Whether a resolved name is one of this relation's."""
        return column == self.value or column in self.columns


@dataclass(slots=True)
class Scope:
    """The relations of one SELECT; ``parent`` is the query around a subquery.

    ``merged`` maps the columns of USING to one expression. ``aliases`` are the SELECT list's names
    that HAVING and ORDER BY may use. ``grouped`` holds the SQLite text of the GROUP BY expressions
    once the SELECT aggregates: outside of aggregate functions nothing else is allowed; ``keyed``
    the items of the SELECT list that it groups by, by the identities of their nodes. ``locals`` are
    the arguments of a lambda. ``windows`` are those of the WINDOW clause; window functions are
    allowed only where ``windows_allowed`` is set. ``star`` is what * stands for; ``aliases_inside``
    says that a subquery named one of ``aliases``.
    """

    relations: list[Relation] = field(default_factory=list)
    parent: Scope | None = None
    merged: dict[str, Typed] = field(default_factory=dict)
    aliases: dict[str, Typed] = field(default_factory=dict)
    grouped: frozenset[str] | None = None
    keyed: dict[int, Typed] = field(default_factory=dict)
    in_aggregate: bool = False
    locals: dict[str, Typed] = field(default_factory=dict)
    windows: dict[str, exp.Window] = field(default_factory=dict)
    windows_allowed: bool = False
    star: list[Typed] = field(default_factory=list)
    aliases_inside: bool = False

    def bind_to_own_rows(self, item: Typed) -> Typed:
        """The argument of an aggregate, which is over the rows of this SELECT.

        SQLite takes an aggregate that names columns of an outer query only for one of that query.
        """
        names = [c.sql for r in self.relations for c in (*r.columns, *filter(None, [r.value]))]
        if self.parent is None or any(name in item.sql for name in names):
            return item
        own = next(iter(names), "")
        if not own:
            return item
        return replace(item, sql=f"coalesce(nullif({own}, {own}), {item.sql})")

    def add(self, relation: Relation) -> None:
        """Puts a relation in scope."""
        if any(r.alias.casefold() == relation.alias.casefold() for r in self.relations):
            raise errors.invalid_argument(
                f"Duplicate table alias {relation.alias} in the same FROM clause"
            )
        self.relations.append(relation)

    def resolve(self, name: str, qualifier: str | None) -> Typed:
        """A column, or INVALID_ARGUMENT as Spanner words it."""
        column = self.find(name, qualifier)
        written = f"{qualifier}.{name}" if qualifier else name
        if column is None:
            raise errors.invalid_argument(f"Unrecognized name: {written}")
        if not self.is_free(column):
            raise errors.invalid_argument(
                f"SELECT list expression references column {written}"
                " which is neither grouped nor aggregated"
            )
        return column

    def is_free(self, column: Typed) -> bool:
        """Whether a column may stand where it does: under GROUP BY only one of its keys may."""
        if self.grouped is None or self.in_aggregate or column.sql in self.grouped:
            return True
        merged = column in self.merged.values()
        return not merged and not any(each.owns(column) for each in self.relations)

    def relation(self, alias: str) -> Relation | None:
        """The relation of this alias here or outside, unless a column here hides it."""
        folded = alias.casefold()
        for relation in self.relations:
            if relation.alias.casefold() == folded:
                return relation
        if self.parent is None or folded in self.locals or folded in self.merged:
            return None
        hidden = any(relation.columns_named(alias) for relation in self.relations)
        return None if hidden else self.parent.relation(alias)

    def names_row(self, name: str) -> bool:
        """Whether a name is a relation's, whose row hides columns of that name."""
        folded = name.casefold()
        if folded in self.locals:
            return False
        if any(r.alias.casefold() == folded and r.value is None for r in self.relations):
            return True
        if folded in self.merged or any(r.columns_named(name) for r in self.relations):
            return False
        return self.parent.names_row(name) if self.parent else False

    def find(self, name: str, qualifier: str | None) -> Typed | None:
        """A column here or outside, or None; two of one name are INVALID_ARGUMENT."""
        columns = self.list_columns(name, qualifier)
        if len(columns) > 1:
            raise errors.invalid_argument(f"Column name {name} is ambiguous")
        return columns[0] if columns else None

    def list_columns(self, name: str, qualifier: str | None) -> list[Typed]:
        """The columns that a name may mean here, or outside where there is none here."""
        if qualifier is not None:
            relation = self.relation(qualifier)
            return relation.list_columns(name) if relation else []
        folded = name.casefold()
        if folded in self.locals:
            return [self.locals[folded]]
        if folded in self.merged:
            return [self.merged[folded]]
        # The alias of a value hides columns of that name, and a field of it in the value.
        columns = [r.value for r in self.relations if r.alias.casefold() == folded and r.value]
        if not columns:
            columns = [c for r in self.relations for c in r.columns_named(name)]
        if columns or self.parent is None:
            return columns
        return self.parent.list_from_inside(name)

    def list_from_inside(self, name: str) -> list[Typed]:
        """The same for a query inside this one, which sees the names of the SELECT list too."""
        alias = self.aliases.get(name.casefold())
        self.aliases_inside |= alias is not None and self.grouped is not None
        return self.list_columns(name, None) if alias is None else [alias]


@dataclass(frozen=True, slots=True)
class CommonTable:
    """A query of WITH: what SQLite calls it, its columns, and whether they are one value's."""

    name: str
    columns: tuple[tuple[str, Type], ...]
    value: bool = False


class Conversions(Protocol):
    """What becomes of another type by itself, in a dialect other than GoogleSQL."""

    def coerce(self, item: Typed, target: Type, context: Context) -> Typed | None:
        """The item as the target type; None where it does not become one by itself."""
        ...

    def unify(self, items: list[Typed], context: Context, where: str) -> tuple[list[Typed], Type]:
        """All items as one type."""
        ...


@dataclass(slots=True)
class Context:
    """The state of compiling one statement.

    ``draws`` says that it takes values of sequences; ``open_views`` are the views inside of which
    it is compiled at the moment, and ``open_functions`` the user's functions. ``conversions`` are
    None in GoogleSQL. ``of_schema`` says that it is an expression of a table, which has no queries.
    """

    schema: Schema
    source: TableSource
    declared: Mapping[str, Type]
    catalog_types: Mapping[str, tuple[tuple[str, Type], ...]]
    long_lists: Mapping[str, tuple[str, Type]] = field(default_factory=dict)
    inferred: dict[str, Type | None] = field(default_factory=dict)
    tables: dict[str, None] = field(default_factory=dict)
    catalog: dict[str, None] = field(default_factory=dict)
    with_queries: dict[str, CommonTable] = field(default_factory=dict)
    uses_now: bool = False
    uses_commit: bool = False
    draws: bool = False
    views: dict[str, None] = field(default_factory=dict)
    open_views: list[str] = field(default_factory=list)
    functions: dict[str, None] = field(default_factory=dict)
    open_functions: list[str] = field(default_factory=list)
    of_schema: bool = False
    counter: int = 0
    conversions: Conversions | None = None
    declared_types: Mapping[str, Type] = field(init=False)

    def __post_init__(self) -> None:
        """Parameters are declared without regard to case."""
        self.declared_types = {name.lower(): type_ for name, type_ in self.declared.items()}

    @property
    def protos(self) -> ProtoTypes:
        """The types of the proto bundle."""
        return types_of(self.schema)

    @property
    def null_type(self) -> Type:
        """What a NULL that nothing types is in the result of a query."""
        return INT64 if self.conversions is None else STRING

    def find_table(self, name: str) -> Table | None:
        """The table of this name or synonym; in the PostgreSQL dialect case matters."""
        table = self.schema.find_table(name)
        if table is None:
            return None
        return table if any(self.means(n, name) for n in (table.name, *table.synonyms)) else None

    def table_not_found(self, name: str) -> errors.SpannerError:
        """The refusal of a name that is no table's, in the words of the dialect."""
        if self.schema.dialect is Dialect.POSTGRESQL:
            return errors.invalid_argument(f'relation "{name}" does not exist')
        return errors.invalid_argument(f"Table not found: {name}")

    def means(self, name: str, written: str) -> bool:
        """Whether a statement that writes a name means the object that has it but for case."""
        return self.schema.dialect is Dialect.GOOGLESQL or name == written

    def alias(self) -> str:
        """A name that no statement can write."""
        self.counter += 1
        return f"${self.counter}"

    def parameter(self, name: str) -> Typed:
        """A parameter; its type may be known, or become known."""
        key = name.lower()
        if name in self.long_lists:
            text, element = self.long_lists[name]
            return Typed(quote_text(text), array(element))
        if key in self.declared_types:
            self.inferred[key] = self.declared_types[key]
        type_ = self.inferred.setdefault(key, None)
        known = drop_length(type_) if type_ else None
        return Typed(f":p_{key}", known, parameter=key, may_be_null=True)

    def is_undeclared(self, item: Typed) -> bool:
        """Whether an item is a parameter whose type its places have to say."""
        return item.parameter is not None and item.parameter not in self.declared_types

    def infer(self, parameter: str, type_: Type) -> None:
        """Gives an untyped parameter the type that its place asks for."""
        if self.inferred.get(parameter) is None:
            self.inferred[parameter] = drop_length(type_)

    def bindings(self, untyped: Type) -> Bindings:
        """What the engine must bind; a parameter that nothing types gets ``untyped``."""
        user = tuple(ResultColumn(name, type_ or untyped) for name, type_ in self.inferred.items())
        return Bindings(user, self.uses_now, self.uses_commit)
