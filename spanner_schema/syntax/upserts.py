"""The clauses of INSERT that sqlglot has not: OR UPDATE | IGNORE, ON CONFLICT, THEN RETURN."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from spanner_schema.model.errors import DdlSyntaxError
from spanner_schema.syntax.tokens import Token, TokenKind, locate

WORDS = {"UPDATE", "IGNORE"}


@dataclass(frozen=True, slots=True)
class ConflictClause:
    """ON CONFLICT: ``columns`` or a ``constraint`` say which one; ``update`` is SET ... or None."""

    columns: tuple[str, ...] = ()
    constraint: str = ""
    update: str | None = None


def blank_out(text: str, start: int, end: int) -> str:
    """The text with a part replaced by blanks, so that offsets stay valid."""
    return text[:start] + " " * (end - start) + text[end:]


def cut_mode(text: str, tokens: list[Token]) -> tuple[str, str]:
    """Blanks out [OR] UPDATE | [OR] IGNORE of an INSERT; returns which of them it was."""
    for first, second, third in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if first.kind is TokenKind.WORD and first.text.upper() in {"SELECT", "VALUES", "FROM"}:
            break
        if first.text.upper() != "INSERT":
            continue
        if second.text.upper() == "OR":
            if third.text.upper() not in WORDS:
                raise DdlSyntaxError(*locate(text, third.start), "UPDATE or IGNORE", third.text)
            return blank_out(text, second.start, third.end), third.text.lower()
        # Without OR the word may also be the name of the table.
        if second.text.upper() in WORDS and third.text not in {"(", "."}:
            return blank_out(text, second.start, second.end), second.text.lower()
    return text, ""


def cut_asserted_rows(text: str, tokens: list[Token]) -> tuple[str, int | None]:
    """Blanks out ASSERT_ROWS_MODIFIED n, also among the tokens; returns the number."""
    for index, (first, second) in enumerate(pairwise(tokens)):
        if first.kind is TokenKind.WORD and first.text.upper() == "ASSERT_ROWS_MODIFIED":
            if second.kind is not TokenKind.NUMBER or not second.text.isdigit():
                raise DdlSyntaxError(*locate(text, second.start), "a number", second.text)
            del tokens[index : index + 2]
            return blank_out(text, first.start, second.end), int(second.text)
    return text, None


def cut_returning(text: str, tokens: list[Token]) -> tuple[str, str | None, str | None]:
    """Splits the text at THEN RETURN [WITH ACTION [AS name]].

    The list of expressions is None where there is no such clause, and so is the action's name.
    """
    for index, (first, second) in enumerate(pairwise(tokens)):
        words = (first.text.upper(), second.text.upper())
        if first.kind is not TokenKind.WORD or words != ("THEN", "RETURN"):
            continue
        rest = tokens[index + 2 :]
        end, action = second.end, None
        if [each.text.upper() for each in rest[:2]] == ["WITH", "ACTION"]:
            end, action = rest[1].end, "ACTION"
            if len(rest) > 3 and rest[2].text.upper() == "AS":
                end, action = rest[3].end, rest[3].text.strip("`")
        return text[: first.start], text[end:], action
    return text, None, None


def cut_on_conflict(text: str, tokens: list[Token]) -> tuple[str, ConflictClause | None]:
    """Splits the text at ON CONFLICT ...; what is behind it has been cut off already."""
    tokens = [each for each in tokens if each.start < len(text) and each.kind is not TokenKind.END]
    for index, (first, second) in enumerate(pairwise(tokens)):
        if (first.text.upper(), second.text.upper()) == ("ON", "CONFLICT"):
            clause = read_conflict(text, tokens[index + 2 :])
            return text[: first.start], clause
    return text, None


def read_conflict(text: str, tokens: list[Token]) -> ConflictClause:
    """[(column, ...) | ON UNIQUE CONSTRAINT name] DO NOTHING | DO UPDATE SET ..."""
    words = [each.text.upper() for each in tokens]
    columns: tuple[str, ...] = ()
    constraint, rest = "", 0
    if words[:1] == ["("] and ")" in words:
        rest = words.index(")") + 1
        columns = tuple(each.text.strip("`") for each in tokens[1 : rest - 1] if each.text != ",")
    elif words[:3] == ["ON", "UNIQUE", "CONSTRAINT"] and len(words) > 3:
        constraint, rest = tokens[3].text.strip("`"), 4
    if words[rest:] == ["DO", "NOTHING"]:
        return ConflictClause(columns, constraint)
    if words[rest : rest + 3] == ["DO", "UPDATE", "SET"]:
        return ConflictClause(columns, constraint, text[tokens[rest + 2].start :])
    at = tokens[rest] if rest < len(tokens) else None
    position = locate(text, at.start if at else len(text) - 1)
    raise DdlSyntaxError(
        *position, "DO NOTHING or DO UPDATE SET", at.text if at else "the end of the statement"
    )
