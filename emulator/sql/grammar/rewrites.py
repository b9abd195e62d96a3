"""The statement in the forms that sqlglot's parser reads: the same meaning, other words.

Each rewrite gives edits of the text; what they leave keeps its place in its line where it can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from emulator import errors
from emulator.sql.grammar.edits import Edit
from emulator.sql.grammar.hints import ENGINE
from emulator.sql.grammar.outline import Outline
from emulator.sql.grammar.parser import Reduction
from emulator.sql.grammar.pipes import Writer
from emulator.sql.grammar.tokens import Kind, Token
from emulator.sql.grammar.types import named_types, spell_name
from spanner_schema.syntax.dialect import NAMED_TYPE
from spanner_schema.syntax.googlesql.reserved import RESERVED

KEPT_HINTS = {"statement", "table_path", "insert", "update", "delete"}
"""Where the parser of trees reads hints itself."""

WITH_FUNCTION = "$with"
"""The function that a WITH expression becomes: no statement can name it otherwise."""

NEW_FUNCTION = "$new"
"""The function that NEW becomes; its first argument is the name of the type."""

HINTED = {
    *("call", "exists", "from_items", "group_by", "in", "join", "order_by", "partition_by"),
    *("aggregate_group", "select", "set_operator", "table_function"),
    *("pipe_select", "pipe_group", "pipe_join"),
}


Rewrite = Callable[[Outline], Iterator[Edit]]


def rewrite(sql: str, outline: Outline) -> str:
    """The text with all rewrites."""
    edits = (edit for each in REWRITES for edit in each(outline))
    return Writer(sql, outline, edits).write()


def find_child(outline: Outline, part: Reduction, symbol: str) -> tuple[int, int] | None:
    """Where in the text a child of a part starts and ends; None where it has no such child."""
    if symbol not in part.rule.symbols:
        return None
    place = part.rule.symbols.index(symbol)
    after = part.starts[place + 1] if place + 1 < len(part.starts) else part.end
    return outline.tokens[part.starts[place]].start, outline.tokens[after - 1].end


def drop_hints(outline: Outline) -> Iterator[Edit]:
    """Hints that change nothing here: all but those of statements and tables."""
    for part in outline.find(*HINTED):
        span = find_child(outline, part, "hint")
        if span:
            yield Edit(*span, " ")


def drop_foreign_hints(outline: Outline) -> Iterator[Edit]:
    """Hints of statements and tables that are for other engines, whatever their values are."""
    entries = outline.find("hint_entry")
    for part in outline.find(*KEPT_HINTS):
        span = find_child(outline, part, "hint")
        if span is None:
            continue
        inside = [e for e in entries if span[0] <= outline.tokens[e.starts[0]].start < span[1]]
        kept = [each for each in inside if not is_foreign(outline, each)]
        if len(kept) < len(inside):
            text = ", ".join(spell_entry(outline, each) for each in kept)
            yield Edit(*span, f"@{{{text}}}" if text else " ")


def is_foreign(outline: Outline, entry: Reduction) -> bool:
    """Whether a hint is qualified with the name of another engine."""
    is_qualified = entry.rule.symbols.count("hint_name") == 2
    return is_qualified and outline.tokens[entry.starts[0]].text.upper() != ENGINE


def spell_entry(outline: Outline, entry: Reduction) -> str:
    """A hint without blanks."""
    return "".join(token.text for token in outline.tokens[entry.starts[0] : entry.end])


def drop_join_methods(outline: Outline) -> Iterator[Edit]:
    """HASH JOIN is a JOIN."""
    for part in outline.find("join_method"):
        token = outline.tokens[part.starts[0]]
        yield Edit(token.start, token.end, "")


def spell_insert_modes(outline: Outline) -> Iterator[Edit]:
    """INSERT IGNORE is INSERT OR IGNORE."""
    for part in outline.find("insert_mode"):
        token = outline.tokens[part.starts[0]]
        if token.text.upper() != "OR":
            yield Edit(token.start, token.start, "OR ")


def unnest_paths(outline: Outline) -> Iterator[Edit]:
    """FROM t.array WITH OFFSET is FROM UNNEST(t.array) AS array WITH OFFSET."""
    for part in outline.find("table_path"):
        span = find_child(outline, part, "path")
        if span and "with_offset" in part.rule.symbols:
            place = part.rule.symbols.index("path")
            last = outline.tokens[part.starts[place + 1] - 1]
            alias = "" if "alias" in part.rule.symbols else f" AS {last.text}"
            yield Edit(span[0], span[0], "UNNEST(")
            yield Edit(span[1], span[1], f"){alias}")


def call_with(outline: Outline) -> Iterator[Edit]:
    """WITH(a AS 1, a + 1) is `$with`(a => 1, a + 1)."""
    for part in outline.find("with_expression"):
        token = outline.tokens[part.starts[0]]
        yield Edit(token.start, token.end, f"`{WITH_FUNCTION}`")
    for part in outline.find("with_variable"):
        token = outline.tokens[part.starts[1]]
        yield Edit(token.start, token.end, "=>")


def name_types(outline: Outline) -> Iterator[Edit]:
    """A message or an enum as a type: its name in a string."""
    for tokens in named_types(outline):
        yield name_edit(tokens, f"{NAMED_TYPE} ")


def name_edit(tokens: Sequence[Token], before: str) -> Edit:
    """The name of a type as a string, behind other words."""
    text = f"{before}'{spell_name(tokens)}'"
    return Edit(tokens[0].start, tokens[-1].end, text)


def call_new(outline: Outline) -> Iterator[Edit]:
    """NEW a.B(1 AS c) is `$new`('a.B', 1 AS c)."""
    for part in outline.find("new"):
        opening = part.starts[2]
        yield Edit(outline.tokens[part.starts[0]].start, outline.tokens[opening].end, "")
        name = outline.tokens[part.starts[1] : opening]
        comma = "" if outline.tokens[opening + 1].text == ")" else ", "
        start = outline.tokens[opening].end
        yield Edit(start, start, f"`{NEW_FUNCTION}`('{spell_name(name)}'{comma}")


def quote_replaced_paths(outline: Outline) -> Iterator[Edit]:
    """REPLACE_FIELDS(m, 1 AS a.b): the path is one name, `a.b`."""
    for part in outline.find("replace_field"):
        tokens = outline.tokens[part.starts[2] : part.end]
        if any(token.text in {"(", "["} for token in tokens):
            raise errors.unimplemented("An extension or an element in REPLACE_FIELDS")
        yield Edit(tokens[0].start, tokens[-1].end, f"`{spell_name(tokens)}`")


def quote_names(outline: Outline) -> Iterator[Edit]:
    """A name after a dot may be a reserved word, or begin with a digit."""
    for token in outline.tokens:
        if token.kind is Kind.NAME and (token.text.upper() in RESERVED or token.text[0].isdigit()):
            yield Edit(token.start, token.end, f"`{token.text}`")


def quote_safe_paths(outline: Outline) -> Iterator[Edit]:
    """SAFE.a.b(...): the function is one name, `a.b`."""
    tokens = outline.tokens
    for number, token in enumerate(tokens[:-5]):
        dots = [each.text for each in tokens[number + 1 : number + 6 : 2]]
        if token.text.upper() == "SAFE" and dots == [".", ".", "("]:
            start, end = tokens[number + 2].start, tokens[number + 4].end
            yield Edit(start, end, f"`{spell_name(tokens[number + 2 : number + 5])}`")


def join_literals(outline: Outline) -> Iterator[Edit]:
    """'a' 'b' is ('a' || 'b')."""
    typed = {part.starts[-1] for part in outline.find("typed_literal")}
    for part in outline.find("string", "bytes"):
        first, *others = outline.tokens[part.starts[0] : part.end]
        if others and part.starts[0] not in typed:
            yield Edit(first.start, first.start, "(")
            for token in others:
                yield Edit(token.start, token.start, "|| ")
            yield Edit(others[-1].end, others[-1].end, ")")


def drop_lock_modes(outline: Outline) -> Iterator[Edit]:
    """FOR UPDATE: a transaction that writes locks what it reads anyway."""
    for part in outline.find("lock_mode"):
        start, end = outline.tokens[part.starts[0]].start, outline.tokens[part.end - 1].end
        yield Edit(start, end, " ")


REWRITES: tuple[Rewrite, ...] = (
    drop_hints,
    drop_foreign_hints,
    drop_join_methods,
    spell_insert_modes,
    unnest_paths,
    quote_names,
    quote_safe_paths,
    join_literals,
    call_with,
    drop_lock_modes,
    name_types,
    call_new,
    quote_replaced_paths,
)
REWRITTEN = frozenset(
    {
        *(*HINTED, *KEPT_HINTS, "join_method", "insert_mode", "string", "bytes", "typed_literal"),
        *("with_expression", "with_variable", "lock_mode", "new", "new_item", "replace_field"),
    }
)
