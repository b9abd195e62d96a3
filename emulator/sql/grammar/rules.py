"""What GoogleSQL's parser refuses although its grammar has a form for it."""

from __future__ import annotations

from collections.abc import Callable

from emulator.sql.grammar.nodes import Node, Tree, leaves, list_links
from emulator.sql.grammar.outline import Outline
from emulator.sql.grammar.tokens import GrammarError

Rule = Callable[[Outline], None]
SET_WORDS = frozenset({"UNION", "EXCEPT", "INTERSECT", "ALL", "DISTINCT"})


def check_set_operations(outline: Outline) -> None:
    """Operations in a row are all the same; others need parentheses."""
    first: dict[int, tuple[str, ...]] = {}
    for node in outline.find("set_operation"):
        operator = node.inner("set_operator")
        words = [leaf.text.upper() for leaf in leaves(operator)]
        operation = tuple(w for w in words if w in SET_WORDS)[:2]
        if first.setdefault(node.start, operation) != operation:
            raise GrammarError(
                "Different set operations cannot be used in the same query without using"
                " parentheses for grouping",
                begin(operator),
            )


def begin(tree: Tree) -> int:
    """Where in the text a part begins."""
    return next(leaves(tree)).token.start


def check_lambdas(outline: Outline) -> None:
    """The arguments of a lambda are names: e -> ..., (a, b) -> ..., () -> ..."""
    for node in outline.find("lambda"):
        words = list(leaves(*(tree for _, tree in node.parts[:-2])))
        inner = words[1:-1] if words[0].text == "(" and words[-1].text == ")" else words
        is_list = inner is not words and any(each.text == "," for each in inner)
        if not is_list and any(each.rule not in {"IDENTIFIER", "DOT"} for each in inner):
            raise GrammarError("Expecting lambda argument list", words[0].token.start)


def check_qualify(outline: Outline) -> None:
    """QUALIFY needs a WHERE, GROUP BY or HAVING before it, so that it is no alias."""
    for node in outline.find("select"):
        qualify = node.find("qualify")
        if qualify is not None and not node.trees("where", "group_by", "having"):
            raise GrammarError(
                "QUALIFY clause must be used in conjunction with WHERE or GROUP BY or HAVING"
                " clause",
                begin(qualify),
            )


def check_joins(outline: Outline) -> None:
    """Conditions in a row close the joins before them; an outer join does not follow a comma."""
    chains: dict[int, list[Node]] = {}
    for node in outline.find("from_items", "join"):
        if len(node.parts) > 1:
            chains.setdefault(node.start, []).append(node)
    for chain in chains.values():
        check_chain(chain)


def check_chain(chain: list[Node]) -> None:
    """The joins of one FROM clause, or of one pair of parentheses, from left to right."""
    unmatched, has_comma, is_nested = 0, False, False
    for link in chain:
        operator = read_operator(link)
        conditions = list_conditions(link)
        if operator == [","]:
            if is_nested:
                raise GrammarError(
                    "Comma join is not allowed after consecutive ON/USING clauses", begin(link)
                )
            has_comma = True
            continue
        if has_comma:
            refuse_after_comma(link, operator)
        is_nested = is_nested or len(conditions) > 1
        unmatched += not {"CROSS", "NATURAL"} & set(operator)
        if len(conditions) > 1 and (has_comma or len(conditions) > unmatched):
            refuse_condition(conditions, 1 if has_comma else unmatched, has_comma)
        unmatched = max(unmatched - len(conditions), 0)


def read_operator(link: Node) -> list[str]:
    """The words between the tables of a join, or the comma."""
    words: list[str] = []
    for name, tree in link.parts[1:]:
        if name in {"JOIN", "COMMA"}:
            return words if name == "JOIN" else [","]
        words += [leaf.text.upper() for leaf in leaves(tree)]
    return words


def list_conditions(link: Node) -> list[Node]:
    """The conditions behind a join, from left to right."""
    conditions = link.node("join_conditions")
    if conditions is None:
        return []
    _, links = list_links(conditions, "join_conditions")
    return [each.inner("join_condition") for each in links]


def refuse_after_comma(link: Node, operator: list[str]) -> None:
    """RIGHT and FULL joins would not mean what the standard says."""
    for word in {"RIGHT", "FULL"} & set(operator):
        raise GrammarError(
            f"{word} JOIN must be parenthesized when following a comma join.  Also, if the"
            " preceding comma join is a correlated CROSS JOIN that unnests an array, then CROSS"
            " JOIN syntax must be used in place of the comma join",
            begin(link.parts[1][1]),
        )


def refuse_condition(conditions: list[Node], joins: int, has_comma: bool) -> None:
    """The first ON or USING that no join is left for."""
    token = next(leaves(conditions[joins])).token
    message = f"Unexpected keyword {token.text.upper()}"
    if not has_comma:
        message = (
            f"The number of join conditions is {len(conditions)} but the number of joins that"
            f" require a join condition is only {joins}. {message}"
        )
    raise GrammarError(message, token.start)


RULES: tuple[Rule, ...] = (
    check_set_operations,
    check_lambdas,
    check_qualify,
    check_joins,
)
