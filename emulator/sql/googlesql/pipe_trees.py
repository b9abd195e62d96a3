"""Pipe syntax: ``FROM t |> WHERE a |> EXTEND b`` is a SELECT from a SELECT.

FROM, joins and conditions are one SELECT; each other operator is a SELECT around it. What a later
operator says of ``t.a``, a column of a table inside, is a column of its own until then, and so is
what rows are ordered by: these have hidden names, and stars leave them out.

See Spanner's documentation, "Pipe query syntax".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TypeVar

from sqlglot import exp

from emulator import errors
from emulator.sql.googlesql.ordering_trees import direct_key, make_limit, make_order
from emulator.sql.googlesql.query_trees import (
    add_with,
    combine,
    make_items,
    make_query,
    modify_select,
)
from emulator.sql.googlesql.source_trees import add_join, make_joined, make_sample
from emulator.sql.googlesql.trees import (
    Trees,
    add_fields,
    alias_of,
    identifier,
    list_names,
    make,
    names_of,
)
from emulator.sql.grammar.nodes import Leaf, Node, Tree

END_ALIASES = {"pipe_select", "pipe_aggregate", "pipe_as", "pipe_set_operation"}
"""After these, nobody can name a table inside."""
T = TypeVar("T", bound=exp.Expr)
Reference = tuple[str, str]
"""A table inside and one of its columns, both in one case."""


@dataclass(slots=True)
class Level:
    """A SELECT on its way. ``aliases`` are the tables in ``source`` that can be named. Stars leave
    two kinds of its columns out: ``kept`` stand for columns of tables inside, and by ``order`` rows
    are ordered, each with the key that has it."""

    source: exp.Expr
    joins: list[exp.Join] = field(default_factory=list)
    aliases: frozenset[str] = frozenset()
    conditions: list[exp.Expr] = field(default_factory=list)
    kept: dict[Reference, str] = field(default_factory=dict)
    order: dict[str, exp.Ordered] = field(default_factory=dict)
    query: exp.Expr | None = None
    """What ``source`` is, where it is a whole query and has no hidden columns."""

    @property
    def star(self) -> exp.Star:
        """All columns that are not hidden."""
        return all_but([*self.kept.values(), *self.order])

    def select(self, items: Sequence[exp.Expr]) -> exp.Select:
        """The SELECT."""
        made = exp.Select(expressions=list(items))
        made.set("from_", exp.From(this=self.source))
        made.set("joins", self.joins or None)
        if self.conditions:
            made.set("where", exp.Where(this=reduce(join_conditions, self.conditions)))
        return made

    def select_in_order(self, items: Sequence[exp.Expr]) -> exp.Select:
        """The SELECT, and its ORDER BY if rows are ordered."""
        made = self.select(items)
        if self.order:
            made.set("order", exp.Order(expressions=[key.copy() for key in self.order.values()]))
        return made


def join_conditions(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Both conditions."""
    return exp.And(this=left, expression=right)


class Pipeline:
    """One query in pipe syntax."""

    def __init__(self, trees: Trees, node: Node) -> None:
        self._trees = trees
        self._node = node
        self._operators = [
            tree for name, tree in node.parts if name in OPERATIONS and isinstance(tree, Node)
        ]
        self._level = self._begin()

    def make(self) -> exp.Expr:
        """The query in standard syntax."""
        made = self._apply_all()
        add_with(self._trees, made, self._node)
        return made

    def _apply_all(self) -> exp.Expr:
        for number, operator in enumerate(self._operators):
            made = OPERATIONS[operator.rule](self, number, operator)
            if made is not None:
                return made
        level = self._level
        if level.query is not None and not level.conditions:
            return level.query
        return level.select_in_order([level.star])

    def _begin(self) -> Level:
        """What is before the first operator."""
        source = self._node.node("from_clause")
        if source is not None:
            first, joins = make_joined(self._trees, source.get("from_items"))
            return Level(first, joins, frozenset(find_aliases([first, *joins])))
        parts = [part for part in self._node.parts if part[0] != "with_clause"]
        pipe = next(number for number, (name, _) in enumerate(parts) if name == "PIPE")
        query = make_query(self._trees, Node("query", tuple(parts[:pipe]), self._node.start))
        return Level(exp.Subquery(this=query))

    def _is_last(self, number: int) -> bool:
        return number + 1 == len(self._operators)

    def _where(self, number: int, operator: Node) -> None:
        self._level.conditions.append(exp.Paren(this=self._make(operator)))

    def _set(self, number: int, operator: Node) -> None:
        items = [
            exp.Alias(this=self._make(each), alias=identifier(each.get("identifier")))
            for each in operator.nodes("pipe_set_item")
        ]
        self._wrap(number, [exp.Star(replace=items)])

    def _drop(self, number: int, operator: Node) -> None:
        columns = [exp.Column(this=each) for each in list_names(operator)]
        self._wrap(number, [exp.Star(except_=columns)])

    def _rename(self, number: int, operator: Node) -> None:
        pairs = [each.trees("identifier") for each in operator.nodes("pipe_rename_item")]
        items = [
            exp.Alias(this=exp.Column(this=identifier(old)), alias=identifier(new))
            for old, new in pairs
        ]
        self._wrap(number, [exp.Star(rename=items)])

    def _sample(self, number: int, operator: Node) -> None:
        self._wrap(number, [exp.Star()])
        self._level.source.set("sample", self._tell(make_sample(self._trees, operator)))

    def _wrap(self, number: int, items: list[exp.Expr]) -> exp.Select:
        """The level becomes a table in FROM, with a column for each one of a table inside that an
        operator after the one with this number names. Returns its SELECT."""
        level = self._level
        kept = dict(level.kept)
        aliases = level.aliases - {table for table, _ in kept}
        later = self._operators[number + 1 :] if aliases else ()
        for table, column in list_references(later, aliases):
            kept[table, column] = name = self._trees.hidden_name()
            items.append(alias_column(exp.column(column, table=table), name))
        made = level.select(items)
        self._level = Level(exp.Subquery(this=made), kept=kept, order=level.order)
        return made

    def _join(self, number: int, operator: Node) -> None:
        if self._level.conditions:
            self._wrap(number - 1, [exp.Star()])
        level = self._level
        joins: list[exp.Join] = []
        add_join(self._trees, joins, operator)
        level.joins += [self._tell(each) for each in joins]
        level.aliases |= frozenset(find_aliases(joins))
        level.order, level.query = {}, None

    def _extend(self, number: int, operator: Node) -> None:
        made = self._wrap(number, [exp.Star(), *self._items(operator)])
        modify_select(self._trees, made, operator)

    def _select(self, number: int, operator: Node) -> exp.Expr | None:
        level = self._level
        items = self._items(operator)
        hidden = [*level.kept.values(), *level.order]
        for each in items:
            if hidden and isinstance(each, exp.Star):
                left_out = each.args.get("except_", ())
                each.set("except_", [*all_but(hidden).args["except_"], *left_out])
        distinct = operator.has("DISTINCT")
        if self._is_last(number):
            made = level.select(items) if distinct else level.select_in_order(items)
            modify_select(self._trees, made, operator)
            return made
        order = {} if distinct or operator.has("select_as") else level.order
        made = level.select([*items, *(exp.column(name) for name in order)])
        modify_select(self._trees, made, operator)
        self._level = Level(exp.Subquery(this=made), order=order)
        return None

    def _name(self, number: int, operator: Node) -> None:
        level = self._level
        alias = identifier(operator.get("identifier"))
        made = level.select([all_but(level.kept.values())])
        source = exp.Subquery(this=made, alias=exp.TableAlias(this=alias))
        self._level = Level(source, aliases=frozenset({alias.name.casefold()}), order=level.order)

    def _aggregate(self, number: int, operator: Node) -> None:
        clause = operator.node("pipe_group")
        groups = clause.nodes("pipe_group_item") if clause is not None else []
        aggregates = operator.nodes("pipe_aggregate_item")
        if not groups and not aggregates:
            raise errors.invalid_argument(
                "Pipe AGGREGATE cannot have both an empty aggregate list and an empty GROUP BY"
            )
        everything = clause is not None and clause.has("pipe_and_order")
        items: list[exp.Expr] = []
        hidden: list[exp.Expr] = []
        order: dict[str, exp.Ordered] = {}
        for place, each in enumerate([*groups, *aggregates]):
            item = each.inner("pipe_item")
            made, alias = self._make(item), alias_of(item)
            direction = each.node("pipe_direction")
            if direction is not None or (everything and place < len(groups)):
                name = self._trees.hidden_name()
                hidden.append(alias_column(made.copy(), name))
                order[name] = direct_key(self._trees, exp.column(name), direction)
            items.append(
                self._name_item(item.get("expression"), made)
                if alias is None
                else exp.Alias(this=made, alias=alias)
            )
        select = self._level.select([*items, *hidden])
        if groups:
            numbers = [exp.Literal.number(place) for place in range(1, len(groups) + 1)]
            select.set("group", exp.Group(expressions=numbers))
        self._level = Level(exp.Subquery(this=select), order=order, query=None if order else select)

    def _order(self, number: int, operator: Node) -> exp.Expr | None:
        level, clause = self._level, operator.inner("order_by")
        if self._is_last(number):
            made = level.select([level.star])
            made.set("order", self._tell(make_order(self._trees, clause)))
            return made
        order: dict[str, exp.Ordered] = {}
        exports: list[exp.Expr] = [all_but(level.order)]
        for each in clause.nodes("ordering"):
            name = self._trees.hidden_name()
            exports.append(alias_column(self._make(each), name))
            order[name] = direct_key(self._trees, exp.column(name), each)
        level.order = {}
        self._wrap(number, exports)
        self._level.order = order
        return None

    def _limit(self, number: int, operator: Node) -> exp.Expr | None:
        level, clause = self._level, operator.inner("limit")
        if self._is_last(number):
            made = level.select_in_order([level.star])
        else:
            made = self._wrap(number, [exp.Star()])
            made.set("order", level.select_in_order([]).args.get("order"))
        make_limit(self._trees, made, clause)
        return made if self._is_last(number) else None

    def _combine(self, number: int, operator: Node) -> None:
        query: exp.Expr = exp.Subquery(this=self._level.select([self._level.star]))
        for each in operator.nodes("pipe_query"):
            right = self._tell(self._trees.expression(each.get("_subquery")))
            query = combine(query, operator.inner("set_operator"), right)
        self._level = Level(exp.Subquery(this=query), query=query)

    def _items(self, operator: Node) -> list[exp.Expr]:
        """The items of a list. One that is ``t.a``, and has no alias, is still called ``a``."""
        nodes = operator.inner("select_list").nodes("select_item")
        return [
            self._name_item(node.parts[0][1] if len(node.parts) == 1 else node, self._tell(made))
            for node, made in zip(nodes, make_items(self._trees, operator), strict=True)
        ]

    def _name_item(self, written: Tree, made: exp.Expr) -> exp.Expr:
        """An item, under the name that it has as it was written."""
        if isinstance(written, Node) and written.rule == "path" and isinstance(made, exp.Column):
            names = names_of(written)
            if len(names) == 2 and made.name != names[-1].name:
                return exp.Alias(this=made, alias=names[-1])
        return made

    def _make(self, node: Node) -> exp.Expr:
        return self._tell(make(self._trees, node))

    def _tell(self, tree: T) -> T:
        """A tree where what the level keeps of tables inside has its hidden names."""
        if not self._level.kept:
            return tree
        holder = exp.Tuple(expressions=[tree])
        for each in list(holder.find_all(exp.Column)):
            first, *fields = each.parts
            name = fields and self._level.kept.get(
                (first.name.casefold(), fields[0].name.casefold())
            )
            if name:
                each.replace(add_fields(exp.column(name), [part.copy() for part in fields[1:]]))
        made: T = holder.expressions[0]
        made.pop()
        return made


def all_but(names: Iterable[str]) -> exp.Star:
    """A star without some columns."""
    columns = [exp.column(name) for name in names]
    return exp.Star(except_=columns or None)


def alias_column(made: exp.Expr, name: str) -> exp.Alias:
    """A column of this name."""
    return exp.Alias(this=made, alias=exp.to_identifier(name))


def find_aliases(relations: Iterable[exp.Expr]) -> Iterator[str]:
    """The tables among some relations and joins that can be named from outside."""
    for each in relations:
        relation = each.this if isinstance(each, exp.Join) else each
        named = relation.args.get("alias")
        if named is not None:
            yield (named.name or named.columns[0].name).casefold()
        elif isinstance(relation, exp.Table) and not isinstance(relation.this, exp.Anonymous):
            yield relation.parts[-1].name.casefold()
        yield from find_aliases(relation.args.get("joins") or ())


def list_references(operators: Iterable[Node], aliases: Iterable[str]) -> list[Reference]:
    """What operators say of tables inside, while they can be named."""
    known, found = set(aliases), dict[Reference, None]()
    for operator in operators:
        for first, second in list_paths(operator):
            if first in known:
                found[first, second] = None
        if operator.rule in END_ALIASES:
            break
    return list(found)


def list_paths(tree: Tree) -> Iterator[Reference]:
    """The first two names of each path."""
    pending = [tree]
    while pending:
        each = pending.pop()
        if isinstance(each, Leaf):
            continue
        if each.rule == "path":
            first, second, *_ = [name.name.casefold() for name in names_of(each)]
            yield first, second
        else:
            pending += [part for _, part in reversed(each.parts)]


Operation = Callable[[Pipeline, int, Node], exp.Expr | None]
OPERATIONS: Mapping[str, Operation] = {
    "pipe_aggregate": Pipeline._aggregate,
    "pipe_as": Pipeline._name,
    "pipe_drop": Pipeline._drop,
    "pipe_extend": Pipeline._extend,
    "pipe_join": Pipeline._join,
    "pipe_limit": Pipeline._limit,
    "pipe_order": Pipeline._order,
    "pipe_rename": Pipeline._rename,
    "pipe_sample": Pipeline._sample,
    "pipe_select": Pipeline._select,
    "pipe_set": Pipeline._set,
    "pipe_set_operation": Pipeline._combine,
    "pipe_where": Pipeline._where,
}
