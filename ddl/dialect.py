"""Spanner's GoogleSQL for sqlglot: queries, DML and expressions (DDL has a parser of its own).

On top of BigQuery's dialect: hints ``@{...}``, ``INSERT OR UPDATE | IGNORE``, ``THEN RETURN``.
A function call is parsed as ``exp.Anonymous`` with its arguments as written, so that it keeps
Spanner's meaning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.bigquery import BigQuery
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from ddl.errors import DdlSyntaxError
from ddl.tokens import Token, TokenKind, locate, tokenize

HINTS = "spanner_hints"
"""Key in ``Table.meta``: a dict of table hints, names in capitals, values as written."""

PARSER_FAULTS = (ValueError, TypeError, AttributeError, IndexError, KeyError)
"""What sqlglot raises by mistake, instead of an error of its own, for some broken statements."""

KEPT_FUNCTIONS = ("ARRAY", "STRUCT")
SEQUENCE_FUNCTIONS = ("GET_NEXT_SEQUENCE_VALUE", "GET_INTERNAL_SEQUENCE_STATE")
KEPT_PARSERS = ("ARRAY", "CAST", "SAFE_CAST", "EXTRACT")


class SpannerDialect(BigQuery):
    """The dialect."""

    class Tokenizer(BigQuery.Tokenizer):
        """BigQuery's tokens, and the types that BigQuery lacks."""

        KEYWORDS: ClassVar[dict[str, Any]] = {
            **BigQuery.Tokenizer.KEYWORDS,
            "FLOAT32": TokenType.FLOAT,
            "UUID": TokenType.UUID,
        }

    class Parser(BigQuery.Parser):  # type: ignore[misc, valid-type]
        """BigQuery's parser with table hints, and without its knowledge of functions."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {
            name: BigQuery.Parser.FUNCTIONS[name] for name in KEPT_FUNCTIONS
        }
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: BigQuery.Parser.FUNCTION_PARSERS[name] for name in KEPT_PARSERS
        }
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}

        def _parse_table_parts(self, *args: object, **kwargs: object) -> exp.Table:
            table: exp.Table = super()._parse_table_parts(*args, **kwargs)
            hints: dict[str, str] = {}
            while self._is_at_hint():
                self._advance(2)
                while not self._match(TokenType.R_BRACE):
                    self._read_hint(hints)
            if hints:
                table.meta[HINTS] = hints
            return table

        def _parse_join(self, *args: Any, **kwargs: Any) -> exp.Join | None:
            """A comma is a cross join; JOIN alone, which looks alike, needs a condition."""
            comma = self._curr and self._curr.token_type is TokenType.COMMA
            join: exp.Join | None = super()._parse_join(*args, **kwargs)
            if comma and join is not None:
                join.set("kind", "CROSS")
            return join

        def _is_at_hint(self) -> bool:
            return bool(
                self._curr
                and self._next
                and self._curr.token_type is TokenType.PARAMETER
                and self._next.token_type is TokenType.L_BRACE
            )

        def _read_hint(self, hints: dict[str, str]) -> None:
            name = self._read_path().upper()
            if not self._match(TokenType.EQ):
                self.raise_error("Expected = in a hint")
            hints[name] = self._read_path()
            self._match(TokenType.COMMA)

        def _read_path(self) -> str:
            if not self._curr:
                self.raise_error("Expected a name in a hint")
            text = str(self._curr.text)
            self._advance()
            while self._match(TokenType.DOT):
                text += "." + str(self._curr.text)
                self._advance()
            return text


@dataclass(frozen=True, slots=True)
class Parsed:
    """A statement, and the clauses that sqlglot cannot represent.

    ``conflict`` is "" (plain INSERT), "update" or "ignore". ``returning`` is None where THEN RETURN
    is missing.
    """

    tree: exp.Expr
    conflict: str = ""
    returning: tuple[exp.Expr, ...] | None = None
    hints: dict[str, str] = field(default_factory=dict)


def parse_query(sql: str) -> Parsed:
    """Parses one query or DML statement.

    Raises DdlSyntaxError with line and column; several statements are an error.
    """
    tokens = list(tokenize(sql))
    while len(tokens) > 1 and tokens[-2].text == ";":
        del tokens[-2]
    text, hints = cut_hints(sql[: tokens[-2].end if len(tokens) > 1 else 0], tokens)
    text = cut_sequences(text, tokens)
    text, conflict = cut_conflict(text, tokens)
    text, returned = cut_returning(text, tokens)
    tree = parse_one(text, sql)
    returning = None
    if returned is not None:
        select = parse_one("SELECT " + returned, sql)
        returning = tuple(select.expressions)
    return Parsed(tree, conflict, returning, hints)


def parse_expression(sql: str) -> exp.Expr:
    """Parses a scalar expression, as DDL holds it. Raises DdlSyntaxError."""
    tree = parse_one(f"SELECT {cut_sequences(sql, list(tokenize(sql)))}", sql)
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1:
        raise DdlSyntaxError(1, 1, "one expression", repr(sql))
    expression: exp.Expr = tree.expressions[0]
    return expression


def parse_one(text: str, original: str) -> exp.Expr:
    """Parses one statement with the dialect. Raises DdlSyntaxError for what sqlglot raises."""
    try:
        trees = [t for t in SpannerDialect().parse(text) if t is not None]
    except (ParseError, TokenError) as error:
        details = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
        description = str(details.get("description") or "a statement")
        raise DdlSyntaxError(
            int(details.get("line") or 1),
            int(details.get("col") or 1),
            "an operand" if "<class" in description else description,
            repr(details.get("highlight") or original[:40]),
        ) from error
    except PARSER_FAULTS as error:
        raise DdlSyntaxError(1, 1, "a statement", repr(original[:40])) from error
    if len(trees) != 1:
        raise DdlSyntaxError(1, 1, "a single statement", f"{len(trees)} statements")
    tree: exp.Expr = trees[0]
    if isinstance(tree, exp.Command):
        raise DdlSyntaxError(*locate(original, 0), "a query or DML", repr(original[:20]))
    return tree


def blank_out(text: str, start: int, end: int) -> str:
    """The text with a part replaced by blanks, so that offsets stay valid."""
    return text[:start] + " " * (end - start) + text[end:]


def cut_hints(text: str, tokens: list[Token]) -> tuple[str, dict[str, str]]:
    """Blanks out hints of the statement and of keywords (joins); those of tables stay."""
    hints: dict[str, str] = {}
    position = 0
    while position < len(tokens):
        if tokens[position].text == "@{":
            end = position
            while tokens[end].text != "}":
                if tokens[end].kind is TokenKind.END:
                    place = locate(text, tokens[end].start)
                    raise DdlSyntaxError(*place, "}", "the end of the statement")
                end += 1
            before = tokens[position - 1] if position else None
            if before is None or before.text.upper() in {"JOIN", "GROUP", "BY", "SELECT"}:
                if before is None:
                    hints |= read_hints([t.text for t in tokens[position + 1 : end]])
                text = blank_out(text, tokens[position].start, tokens[end].end)
            position = end
        position += 1
    return text, hints


def read_hints(words: list[str]) -> dict[str, str]:
    """The hints between braces: names, which may be qualified, in capitals."""
    hints: dict[str, str] = {}
    for text in "".join(word if word != "," else "\n" for word in words).split("\n"):
        name, _, value = text.partition("=")
        hints[name.upper()] = value
    return hints


def cut_sequences(text: str, tokens: list[Token]) -> str:
    """Blanks out the word SEQUENCE before a name, in the functions that take one."""
    for function, parenthesis, word in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if (
            function.text.upper() in SEQUENCE_FUNCTIONS
            and parenthesis.text == "("
            and word.text.upper() == "SEQUENCE"
        ):
            text = blank_out(text, word.start, word.end)
    return text


def cut_conflict(text: str, tokens: list[Token]) -> tuple[str, str]:
    """Blanks out OR UPDATE | OR IGNORE of an INSERT; returns which of them it was."""
    for first, second, third in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if first.kind is TokenKind.WORD and first.text.upper() in {"SELECT", "VALUES", "FROM"}:
            break
        if (first.text.upper(), second.text.upper()) == ("INSERT", "OR"):
            if third.text.upper() not in {"UPDATE", "IGNORE"}:
                raise DdlSyntaxError(*locate(text, third.start), "UPDATE or IGNORE", third.text)
            return blank_out(text, second.start, third.end), third.text.lower()
    return text, ""


def cut_returning(text: str, tokens: list[Token]) -> tuple[str, str | None]:
    """Splits the text at THEN RETURN; None where there is none."""
    for first, second in pairwise(tokens):
        if first.kind is TokenKind.WORD and (first.text.upper(), second.text.upper()) == (
            "THEN",
            "RETURN",
        ):
            return text[: first.start], text[second.end :]
    return text, None
