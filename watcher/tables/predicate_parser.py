"""Reads ``where`` of a table from its text, by the tokens of either dialect."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation

from spanner_schema.model.column_types import Type
from spanner_schema.model.errors import DdlSyntaxError
from spanner_schema.model.schema import Dialect, Table
from spanner_schema.syntax.tokens import Token, TokenKind, tokenize
from watcher.model.errors import ConfigurationError
from watcher.tables.bound_predicates import Lookup, bind
from watcher.tables.predicates import (
    Among,
    Compare,
    Either,
    Every,
    IsNull,
    Literal,
    Matches,
    MatchKind,
    Negation,
    OtherColumn,
    Predicate,
    RowFilter,
)

EXAMPLE = "City = 'Bern' AND Age >= 18"
FORMS = (
    "COLUMN = 'text', <>, <, <=, >, >= with a value or a column behind, IS [NOT] NULL,"
    " [NOT] IN (...), [NOT] BETWEEN ... AND ..., [NOT] LIKE 'text%', STARTS_WITH(COLUMN, 'text'),"
    " a BOOL column, AND, OR, NOT and parentheses"
)
SIGNS = ("=", "<>", "!=", "<", "<=", ">", ">=")
TYPED = ("DATE", "TIMESTAMP", "TIMESTAMPTZ", "NUMERIC")
"""The words that may stand before a text, as DATE '2026-01-31'."""
DEPTH_MAX = 50


class Parser:
    """Reads a predicate from tokens. Raises ConfigurationError."""

    def __init__(self, text: str, dialect: Dialect) -> None:
        self._text = text
        self._depth = 0
        try:
            self._tokens = list(tokenize(text, dialect))
        except DdlSyntaxError as error:
            raise refuse(text, f"has {error.actual} at column {error.column}") from error

    def parse(self) -> Predicate:
        """The whole text."""
        predicate = self._read_either()
        if self._token.kind is not TokenKind.END:
            raise self._refuse_token("AND, OR or the end")
        return predicate

    @property
    def _token(self) -> Token:
        return self._tokens[0]

    def _take(self) -> Token:
        return self._tokens.pop(0)

    def _is_word(self, *words: str) -> bool:
        return self._token.kind is TokenKind.WORD and self._token.text.upper() in words

    def _accept(self, text: str) -> bool:
        """Takes a word or a symbol if it comes next."""
        kinds = (TokenKind.WORD, TokenKind.SYMBOL)
        if self._token.kind not in kinds or self._token.text.upper() != text:
            return False
        self._take()
        return True

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self._refuse_token(text)

    def _refuse_token(self, expected: str) -> ConfigurationError:
        found = repr(self._token.text) if self._token.text else "the end"
        why = f"at column {self._token.start + 1}: expected {expected}, found {found}"
        return refuse(self._text, f"is not a condition {why}")

    def _read_either(self) -> Predicate:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise refuse(self._text, f"has more than {DEPTH_MAX} parentheses inside each other")
        operands = [self._read_every()]
        while self._accept("OR"):
            operands.append(self._read_every())
        self._depth -= 1
        return operands[0] if len(operands) == 1 else Either(tuple(operands))

    def _read_every(self) -> Predicate:
        operands = [self._read_negation()]
        while self._accept("AND"):
            operands.append(self._read_negation())
        return operands[0] if len(operands) == 1 else Every(tuple(operands))

    def _read_negation(self) -> Predicate:
        count = 0
        while self._accept("NOT"):
            count += 1
        predicate = self._read_test()
        return Negation(predicate) if count % 2 else predicate

    def _read_test(self) -> Predicate:
        if self._accept("("):
            inside = self._read_either()
            self._expect(")")
            return inside
        if self._is_word("STARTS_WITH") and self._tokens[1].text == "(":
            return self._read_starts_with()
        column = self._read_column()
        if self._token.text in SIGNS:
            sign = self._take().text
            return Compare(column, "<>" if sign == "!=" else sign, self._read_operand())
        if self._accept("IS"):
            negated = self._accept("NOT")
            self._expect("NULL")
            return Negation(IsNull(column)) if negated else IsNull(column)
        negated = self._accept("NOT")
        if self._accept("IN"):
            return negate(Among(column, tuple(self._read_list())), negated)
        if self._accept("BETWEEN"):
            low = self._read_operand()
            self._expect("AND")
            high = Compare(column, "<=", self._read_operand())
            return negate(Every((Compare(column, ">=", low), high)), negated)
        if self._accept("LIKE"):
            return negate(self._read_pattern(column), negated)
        if negated:
            raise self._refuse_token("IN, BETWEEN or LIKE")
        return Compare(column, "=", True)

    def _read_starts_with(self) -> Predicate:
        self._take()
        self._expect("(")
        column = self._read_column()
        self._expect(",")
        text = self._read_value()
        self._expect(")")
        return Matches(column, MatchKind.START, text)

    def _read_pattern(self, column: str) -> Predicate:
        """A pattern of LIKE with % at its ends only."""
        pattern = self._read_value()
        inside = str(pattern).removeprefix("%").removesuffix("%")
        if not isinstance(pattern, str) or (pattern and not inside) or set(inside) & set("%_"):
            raise refuse(
                self._text,
                f"has the pattern {pattern!r}: write a text with % at its ends, as 'a%', '%a' or"
                " '%a%', and no % or _ inside",
            )
        before, after = pattern.startswith("%"), pattern.endswith("%")
        if not before and not after:
            return Compare(column, "=", pattern)
        kind = MatchKind.START if not before else MatchKind.ANYWHERE if after else MatchKind.END
        return Matches(column, kind, inside)

    def _read_column(self) -> str:
        quoted = self._token.kind is TokenKind.QUOTED
        if not quoted and (self._token.kind is not TokenKind.WORD or self._tokens[1].text == "("):
            raise self._refuse_token("the name of a column")
        return self._take().value

    def _read_list(self) -> Iterator[Literal]:
        self._expect("(")
        yield self._read_value()
        while self._accept(","):
            yield self._read_value()
        self._expect(")")

    def _read_operand(self) -> Literal | OtherColumn:
        typed = self._is_word(*TYPED) and self._tokens[1].kind is TokenKind.STRING
        word = self._token.kind is TokenKind.WORD and not self._is_word("TRUE", "FALSE", "NULL")
        if self._token.kind is TokenKind.QUOTED or (word and not typed):
            return OtherColumn(self._read_column())
        return self._read_value()

    def _read_value(self) -> Literal:
        if self._accept("TRUE"):
            return True
        if self._accept("FALSE"):
            return False
        if self._is_word(*TYPED) and self._tokens[1].kind is TokenKind.STRING:
            self._take()
        negative = self._accept("-")
        if self._token.kind is TokenKind.NUMBER:
            return self._read_number(self._take().text, negative)
        if self._token.kind is TokenKind.STRING and not negative:
            return self._read_text(self._take().text)
        raise self._refuse_token("a number, a text in single quotes, TRUE or FALSE")

    def _read_number(self, text: str, negative: bool) -> Literal:
        try:
            number = Decimal(text)
        except InvalidOperation as error:
            raise refuse(self._text, f"has the number {text}: write it with digits") from error
        number = number.copy_negate() if negative else number
        return int(number) if text.isdecimal() else number

    def _read_text(self, text: str) -> str:
        """A text in quotes. Escapes differ between the dialects: a quote is doubled, and a
        backslash is not allowed."""
        parts = [text]
        while self._token.kind is TokenKind.STRING and self._token.text[0] == "'":
            parts.append(self._take().text)  # GoogleSQL's tokens end at each quote
        plain = all(len(each) > 1 and each[0] == each[-1] == "'" for each in parts)
        if not plain or "\\" in "".join(parts) or any(each.startswith("'''") for each in parts):
            raise refuse(
                self._text,
                f"has the text {text}: write texts in single quotes, without a backslash, and a"
                " quote inside twice",
            )
        return "'".join(each[1:-1] for each in parts).replace("''", "'")


def refuse(text: str, problem: str) -> ConfigurationError:
    """The error for a text that is not a predicate."""
    return ConfigurationError(
        f'where = "{text}" {problem}; write a condition such as {EXAMPLE}: there are {FORMS}'
    )


def negate(predicate: Predicate, negated: bool) -> Predicate:
    """The predicate, or its opposite."""
    return Negation(predicate) if negated else predicate


def parse_predicate(text: str, dialect: Dialect = Dialect.GOOGLESQL) -> Predicate:
    """The predicate that a text writes. Raises ConfigurationError."""
    return Parser(text, dialect).parse()


def check_predicate(text: str) -> None:
    """Raises ConfigurationError for a text that is a predicate in no dialect."""
    try:
        parse_predicate(text)
    except ConfigurationError:
        if '"' not in text:
            raise
        parse_predicate(text, Dialect.POSTGRESQL)


def make_row_filter(text: str, table: Table, dialect: Dialect) -> RowFilter:
    """The filter of a table's rows. Raises ConfigurationError for a column that the table does not
    have, and for one that cannot be compared so."""
    predicate = parse_predicate(text, dialect)
    columns: dict[str, Type] = {}
    bound = bind(predicate, Lookup(table, columns))
    return RowFilter(bound, tuple(columns.items()), text)
