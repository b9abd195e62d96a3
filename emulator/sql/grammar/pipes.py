"""Pipe syntax in standard syntax: ``FROM t |> WHERE a |> EXTEND b`` is a SELECT from a SELECT.

FROM, joins and conditions are one SELECT; each other operator is a SELECT around it. What a later
operator says of ``t.a``, a column of a table inside, is a column of its own until then, and so is
what rows are ordered by: ``$pipe1`` and so on, which stars leave out.

See Spanner's documentation, "Pipe query syntax".
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count

from emulator import errors
from emulator.sql.grammar.edits import Edit
from emulator.sql.grammar.outline import Outline
from emulator.sql.grammar.parser import Reduction
from emulator.sql.grammar.pipe_parts import (
    PIPED,
    Parts,
    Reference,
    find_references,
    fold,
    list_references,
)

RENAME_STAR = "$rename"
"""The word behind a star that gives its columns other names: no statement can say it otherwise."""
Words = Mapping[int, tuple[int, str]]
"""Other words for some tokens: by the number of the first one, the number behind the last one, and
the text."""


class Writer:
    """Writes a statement in standard syntax."""

    def __init__(self, sql: str, outline: Outline) -> None:
        self._sql = sql
        self.outline = outline
        self.parts = Parts(outline)
        self.numbers = count(1)
        self._starts = [token.start for token in outline.tokens]
        self._ends = [token.end for token in outline.tokens]

    def write(self) -> str:
        """The statement."""
        return self._render(0, len(self._sql), {})

    def spell(self, start: int, end: int, words: Words) -> str:
        """The tokens from one to the one before another."""
        tokens = self.outline.tokens
        return self._render(tokens[start].start, tokens[end - 1].end, words) if end > start else ""

    def _render(self, low: int, high: int, words: Words) -> str:
        """The characters from one place to another."""
        edits = self._edit_queries(low, high, words)
        text, place = list[str](), low
        for edit in edits:
            text += [self._sql[place : edit.start], edit.text]
            place = edit.end
        return "".join(text) + self._sql[place:high]

    def _edit_queries(self, low: int, high: int, words: Words) -> list[Edit]:
        """The queries in pipe syntax and the other words, in their order."""
        tokens = self.outline.tokens
        first = bisect_left(self._starts, low)
        last = bisect_right(self._ends, high)
        edits = list[Edit]()
        for part in self.parts.find_outer(PIPED, first, last):
            inner = {n: each for n, each in words.items() if part.starts[0] <= n < part.end}
            text = Pipeline(self, part, inner).write()
            edits.append(Edit(tokens[part.starts[0]].start, tokens[part.end - 1].end, text))
        covered = [edit.start for edit in edits]
        for number, (end, text) in words.items():
            edit = Edit(tokens[number].start, tokens[end - 1].end, text)
            around = bisect_right(covered, edit.start) - 1
            free = around < 0 or edit.start >= edits[around].end
            if low <= edit.start and edit.end <= high and free:
                edits.append(edit)
        edits.sort(key=lambda each: each.start)
        return edits


@dataclass(slots=True)
class Level:
    """A SELECT on its way. ``aliases`` are the tables in ``source`` that can be named. Stars leave
    two kinds of its columns out: ``kept`` stand for columns of tables inside, and by ``order`` rows
    are ordered, each with its direction."""

    source: str
    aliases: frozenset[str] = frozenset()
    conditions: list[str] = field(default_factory=list)
    kept: dict[Reference, str] = field(default_factory=dict)
    order: list[tuple[str, str]] = field(default_factory=list)
    query: str = ""
    """What ``source`` is, where it is a whole query and has no hidden columns."""

    @property
    def star(self) -> str:
        """All columns that are not hidden."""
        hidden = [*self.kept.values(), *(name for name, _ in self.order)]
        return f"* EXCEPT ({', '.join(hidden)})" if hidden else "*"

    def select(self, items: str) -> str:
        """The SELECT."""
        where = f" WHERE {' AND '.join(self.conditions)}" if self.conditions else ""
        return f"SELECT {items} FROM {self.source}{where}"

    def spell_order(self) -> str:
        """An ORDER BY, if rows are ordered."""
        by = ", ".join(f"{name}{direction}" for name, direction in self.order)
        return f" ORDER BY {by}" if by else ""


class Pipeline:
    """One query in pipe syntax. ``words`` are those of the query around it."""

    def __init__(self, writer: Writer, part: Reduction, words: Words) -> None:
        self._writer = writer
        self._parts = writer.parts
        self._tokens = writer.outline.tokens
        self._part = part
        self._words = words
        self._operators = writer.parts.list_operators(part)
        self._level = Level("")

    def write(self) -> str:
        """The query in standard syntax."""
        with_clause = self._begin()
        for number in range(len(self._operators)):
            if text := self._apply(number):
                return f"{with_clause}{text}"
        level = self._level
        if level.query and not level.conditions:
            return f"{with_clause}{level.query}"
        return f"{with_clause}{level.select(level.star)}{level.spell_order()}"

    def _begin(self) -> str:
        """Takes what is before the first operator; returns its WITH clause."""
        start, end = self._part.starts[0], self._part.end
        if self._operators:
            end = self._operators[0].starts[0] - 1
        clauses = [p for p in self._parts.find("with_clause", start, end) if p.starts[0] == start]
        after = max((each.end for each in clauses), default=start)
        if self._tokens[after].text.upper() == "FROM":
            self._level = Level(self._spell(after + 1, end), self._parts.find_aliases(after, end))
        else:
            self._level = Level(f"({self._spell(after, end)})")
        return f"{self._spell(start, after)} " if after > start else ""

    def _apply(self, number: int) -> str:
        """An operator; returns the whole query where it is the last one, and needs none around
        it."""
        operator = self._operators[number]
        return OPERATIONS[operator.rule.origin](self, number, operator) or ""

    def _is_last(self, number: int) -> bool:
        return number + 1 == len(self._operators)

    def _where(self, number: int, operator: Reduction) -> None:
        condition = self._spell(operator.starts[1], operator.end)
        self._level.conditions.append(f"({condition})")

    def _set(self, number: int, operator: Reduction) -> None:
        items = [
            f"{self._spell(each.starts[2], each.end)} AS {self._tokens[each.starts[0]].text}"
            for each in self._parts.find_own(operator, "pipe_set_item")
        ]
        self._wrap(number, f"* REPLACE ({', '.join(items)})")

    def _drop(self, number: int, operator: Reduction) -> None:
        names = self._spell_list(operator.starts[1], operator.end)
        self._wrap(number, f"* EXCEPT ({names})")

    def _rename(self, number: int, operator: Reduction) -> None:
        items = self._parts.find_own(operator, "pipe_rename_item")
        named = [(self._tokens[each.starts[0]], self._tokens[each.end - 1]) for each in items]
        pairs = ", ".join(f"{old.text} AS {new.text}" for old, new in named)
        self._wrap(number, f"* `{RENAME_STAR}` ({pairs})")

    def _sample(self, number: int, operator: Reduction) -> None:
        self._wrap(number, "*")
        self._level.source += f" {self._spell(operator.starts[0], operator.end)}"

    def _wrap(self, number: int, items: str, more: str = "") -> None:
        """The level becomes a table in FROM, with a column for each one of a table inside that an
        operator after the one with this number names."""
        level = self._level
        exports, kept = [], dict(level.kept)
        aliases = level.aliases - {table for table, _ in kept}
        later = self._operators[number + 1 :] if aliases else ()
        for reference in list_references(self._tokens, later, aliases):
            name = self._make_name()
            kept[reference] = name
            exports.append(f", `{reference[0]}`.`{reference[1]}` AS {name}")
        source = f"({level.select(items + ''.join(exports))}{more})"
        self._level = Level(source, kept=kept, order=level.order)

    def _join(self, number: int, operator: Reduction) -> None:
        if self._level.conditions:
            self._wrap(number - 1, "*")
        level = self._level
        level.source += f" {self._spell(operator.starts[0], operator.end)}"
        level.aliases |= self._parts.find_aliases(operator.starts[0], operator.end)
        level.order, level.query = [], ""

    def _extend(self, number: int, operator: Reduction) -> None:
        listed = self._parts.find_own(operator, "select_list")[0]
        window = self._spell(listed.end, operator.end)
        items = self._spell_list(listed.starts[0], listed.end, self._name_items(operator))
        self._wrap(number, f"*, {items}", f" {window}" if window else "")

    def _select(self, number: int, operator: Reduction) -> str:
        level, symbols = self._level, operator.rule.symbols
        listed = self._parts.find_own(operator, "select_list")[0]
        before = self._spell(operator.starts[0] + 1, listed.starts[0])
        words = {**self._name_items(operator), **self._limit_stars(listed)}
        items = before + " " * bool(before) + self._spell_list(listed.starts[0], listed.end, words)
        window = self._spell(listed.end, operator.end)
        window = f" {window}" if window else ""
        if self._is_last(number):
            order = "" if "DISTINCT" in symbols else level.spell_order()
            return f"{level.select(items)}{window}{order}"
        kept = [] if {"DISTINCT", "select_as"} & set(symbols) else level.order
        hidden = "".join(f", {name}" for name, _ in kept)
        self._level = Level(f"({level.select(items + hidden)}{window})", order=kept)
        return ""

    def _name(self, number: int, operator: Reduction) -> None:
        level = self._level
        alias = self._tokens[operator.starts[1]]
        kept = ", ".join(level.kept.values())
        items = f"* EXCEPT ({kept})" if kept else "*"
        source = f"({level.select(items)}) AS {alias.text}"
        self._level = Level(source, frozenset({fold(alias)}), order=level.order)

    def _aggregate(self, number: int, operator: Reduction) -> None:
        groups = self._parts.find_own(operator, "pipe_group_item")
        aggregates = self._parts.find_own(operator, "pipe_aggregate_item")
        if not groups and not aggregates:
            raise errors.invalid_argument(
                "Pipe AGGREGATE cannot have both an empty aggregate list and an empty GROUP BY"
            )
        words = self._name_items(operator)
        everything = bool(self._parts.find_own(operator, "pipe_and_order"))
        items, order, hidden = list[str](), list[tuple[str, str]](), list[str]()
        named = {each.starts[0]: each for each in self._parts.find_own(operator, "pipe_item")}
        for place, each in enumerate([*groups, *aggregates]):
            item = named[each.starts[0]]
            items.append(self._spell(item.starts[0], item.end, words))
            direction = self._spell(item.end, each.end)
            if direction or (everything and place < len(groups)):
                name = self._make_name()
                end = item.starts[1] if len(item.starts) > 1 else item.end
                hidden.append(f", {self._spell(item.starts[0], end)} AS {name}")
                order.append((name, f" {direction}"))
        numbers = ", ".join(map(str, range(1, len(groups) + 1)))
        group = f" GROUP BY {numbers}" if groups else ""
        text = self._level.select(", ".join(items) + "".join(hidden))
        query = "" if order else f"{text}{group}"
        self._level = Level(f"({text}{group})", order=order, query=query)

    def _order(self, number: int, operator: Reduction) -> str:
        level = self._level
        if self._is_last(number):
            text = self._spell(operator.starts[0], operator.end)
            return f"{level.select(level.star)} {text}"
        order, exports = [], []
        for each in self._parts.find_own(operator, "ordering"):
            name = self._make_name()
            end = each.starts[1] if len(each.starts) > 1 else each.end
            exports.append(f", {self._spell(each.starts[0], end)} AS {name}")
            order.append((name, f" {self._spell(end, each.end)}"))
        old = ", ".join(name for name, _ in level.order)
        star = f"* EXCEPT ({old})" if old else "*"
        level.order = []
        self._wrap(number, star + "".join(exports))
        self._level.order = order
        return ""

    def _limit(self, number: int, operator: Reduction) -> str:
        level = self._level
        text = self._spell(operator.starts[0], operator.end)
        if self._is_last(number):
            return f"{level.select(level.star)}{level.spell_order()} {text}"
        self._wrap(number, "*", f"{level.spell_order()} {text}")
        return ""

    def _combine(self, number: int, operator: Reduction) -> None:
        (words, *_) = self._parts.find_own(operator, "set_operator")
        kind = self._spell(words.starts[0], words.end)
        queries = self._parts.find_own(operator, "pipe_query")
        texts = [f"({self._level.select(self._level.star)})"]
        texts += [self._spell(each.starts[0], each.end) for each in queries]
        query = f" {kind} ".join(texts)
        self._level = Level(f"({query})", query=query)

    def _spell(self, start: int, end: int, words: Words | None = None) -> str:
        """Tokens in standard syntax: what the level keeps of tables inside has other names."""
        told = dict(self._words)
        for number, reference in find_references(self._tokens, start, end):
            if (name := self._level.kept.get(reference)) is not None:
                told[number] = number + 3, name
        return self._writer.spell(start, end, {**told, **(words or {})})

    def _spell_list(self, start: int, end: int, words: Words | None = None) -> str:
        """The same without a comma behind the last item."""
        return self._spell(start, end - (self._tokens[end - 1].text == ","), words)

    def _name_items(self, operator: Reduction) -> dict[int, tuple[int, str]]:
        """An item that is ``t.a``, and has no alias, is still called ``a``."""
        told = {}
        name = "pipe_item" if operator.rule.origin == "pipe_aggregate" else "select_item"
        for part in self._parts.find_own(operator, name, nested=True):
            for number, reference in find_references(self._tokens, part.starts[0], part.end):
                kept = self._level.kept.get(reference)
                if kept is not None and (number, number + 3) == (part.starts[0], part.end):
                    told[number] = number + 3, f"{kept} AS {self._tokens[number + 2].text}"
        return told

    def _limit_stars(self, listed: Reduction) -> dict[int, tuple[int, str]]:
        """A star has no hidden columns."""
        level = self._level
        told = {}
        hidden = [*level.kept.values(), *(name for name, _ in level.order)]
        for part in self._parts.find_outer("select_item", listed.starts[0], listed.end):
            if not hidden or part.rule.symbols[0] != "star":
                continue
            excepted = self._parts.find("star_except", part.starts[0], part.end)
            if excepted:
                told[excepted[0].starts[1]] = excepted[0].starts[1] + 1, f"({', '.join(hidden)}, "
            else:
                told[part.starts[0]] = part.starts[0] + 1, level.star
        return told

    def _make_name(self) -> str:
        return f"`$pipe{next(self._writer.numbers)}`"


OPERATIONS: Mapping[str, Callable[[Pipeline, int, Reduction], str | None]] = {
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
