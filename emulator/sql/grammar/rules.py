"""What GoogleSQL's parser refuses although its grammar has a form for it."""

from __future__ import annotations

from collections.abc import Callable

from emulator.sql.grammar.outline import Outline
from emulator.sql.grammar.parser import Reduction
from emulator.sql.grammar.tokens import GrammarError, Kind, Token

Rule = Callable[[Outline], None]


def check_set_operations(outline: Outline) -> None:
    """Operations in a row are all the same; others need parentheses."""
    first: dict[int, tuple[str, ...]] = {}
    for part in outline.find("set_operation"):
        left, start, end = part.starts
        words = tuple(t.text.upper() for t in outline.tokens[start:end])
        operation = (
            tuple(w for w in words if w in {"UNION", "EXCEPT", "INTERSECT"})[:1]
            + tuple(w for w in words if w in {"ALL", "DISTINCT"})[:1]
        )
        if first.setdefault(left, operation) != operation:
            raise GrammarError(
                "Different set operations cannot be used in the same query without using"
                " parentheses for grouping",
                outline.tokens[start].start,
            )


def check_lambdas(outline: Outline) -> None:
    """The arguments of a lambda are names: e -> ..., (a, b) -> ..., () -> ..."""
    for part in outline.find("lambda"):
        tokens = outline.tokens[part.starts[0] : part.starts[-2]]
        inner = tokens[1:-1] if tokens[0].text == "(" and tokens[-1].text == ")" else tokens
        is_list = inner is not tokens and any(each.text == "," for each in inner)
        if not is_list and not all(map(is_of_path, inner)):
            raise GrammarError("Expecting lambda argument list", tokens[0].start)


def is_of_path(token: Token) -> bool:
    """A name, or a dot between names."""
    return token.kind in {Kind.WORD, Kind.QUOTED, Kind.NAME} or token.text == "."


def check_qualify(outline: Outline) -> None:
    """QUALIFY needs a WHERE, GROUP BY or HAVING before it, so that it is no alias."""
    for part in outline.find("_select_tail"):
        symbols = part.rule.symbols
        if "qualify" in symbols and not {"where", "group_by", "having"} & set(symbols):
            place = part.starts[symbols.index("qualify")]
            raise GrammarError(
                "QUALIFY clause must be used in conjunction with WHERE or GROUP BY or HAVING"
                " clause",
                outline.tokens[place].start,
            )


def check_joins(outline: Outline) -> None:
    """Conditions in a row close the joins before them; an outer join does not follow a comma."""
    conditions: dict[int, list[int]] = {}
    for part in outline.find("join_conditions"):
        listed = conditions.setdefault(part.starts[0], [part.starts[0]])
        listed += part.starts[1:]
    chains: dict[int, list[Reduction]] = {}
    for part in outline.find("from_items", "join"):
        if len(part.starts) > 1:
            chains.setdefault(part.starts[0], []).append(part)
    for chain in chains.values():
        check_chain(outline, chain, conditions)


def check_chain(outline: Outline, chain: list[Reduction], conditions: dict[int, list[int]]) -> None:
    """The joins of one FROM clause, or of one pair of parentheses, from left to right."""
    unmatched, has_comma, is_nested = 0, False, False
    for link in chain:
        operator = read_operator(outline, link)
        last = link.starts[-1] if link.rule.symbols[-1] == "join_conditions" else None
        listed = conditions[last] if last is not None else []
        if operator == (",",):
            if is_nested:
                raise GrammarError(
                    "Comma join is not allowed after consecutive ON/USING clauses",
                    outline.tokens[link.starts[0]].start,
                )
            has_comma = True
            continue
        if has_comma:
            refuse_after_comma(outline, link, operator)
        is_nested = is_nested or len(listed) > 1
        unmatched += not {"CROSS", "NATURAL"} & set(operator)
        if len(listed) > 1 and (has_comma or len(listed) > unmatched):
            refuse_condition(outline, listed, 1 if has_comma else unmatched, has_comma)
        unmatched = max(unmatched - len(listed), 0)


def read_operator(outline: Outline, link: Reduction) -> tuple[str, ...]:
    """The words between the tables of a join, or the comma."""
    if "JOIN" not in link.rule.symbols:
        return (",",)
    place = link.rule.symbols.index("JOIN")
    tokens = outline.tokens[link.starts[1] : link.starts[place]]
    return tuple(each.text.upper() for each in tokens)


def refuse_after_comma(outline: Outline, link: Reduction, operator: tuple[str, ...]) -> None:
    """RIGHT and FULL joins would not mean what the standard says."""
    for word in {"RIGHT", "FULL"} & set(operator):
        raise GrammarError(
            f"{word} JOIN must be parenthesized when following a comma join.  Also, if the"
            " preceding comma join is a correlated CROSS JOIN that unnests an array, then CROSS"
            " JOIN syntax must be used in place of the comma join",
            outline.tokens[link.starts[1]].start,
        )


def refuse_condition(outline: Outline, listed: list[int], joins: int, has_comma: bool) -> None:
    """The first ON or USING that no join is left for."""
    token = outline.tokens[listed[joins]]
    message = f"Unexpected keyword {token.text.upper()}"
    if not has_comma:
        message = (
            f"The number of join conditions is {len(listed)} but the number of joins that require"
            f" a join condition is only {joins}. {message}"
        )
    raise GrammarError(message, token.start)


RULES: tuple[Rule, ...] = (
    check_set_operations,
    check_lambdas,
    check_qualify,
    check_joins,
)
WATCHED = frozenset(
    {"set_operation", "lambda", "_select_tail", "join_conditions", "from_items", "join"}
)
