"""Spanner's GoogleSQL for sqlglot: queries, DML and expressions (DDL has a parser of its own).

On top of BigQuery's dialect: hints ``@{...}``, ``INSERT OR UPDATE | IGNORE``, ``THEN RETURN``.
A function call is parsed as ``exp.Anonymous`` with its arguments as written, so that it keeps
Spanner's meaning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.bigquery import BigQuery
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from spanner_schema.model.errors import DdlSyntaxError
from spanner_schema.syntax.tokens import Token, TokenKind, locate, tokenize
from spanner_schema.syntax.upserts import (
    ConflictClause,
    blank_out,
    cut_asserted_rows,
    cut_mode,
    cut_on_conflict,
    cut_returning,
)

HINTS = "spanner_hints"
"""Key in ``Table.meta``: a dict of table hints, names in capitals, values as written."""

OFFSET = "spanner_offset"
"""Key in ``Table.meta``: the name that WITH OFFSET gives, behind a path to an array."""

WITH_EXPRESSION = "$WITH"
"""The function that stands for WITH(name AS value, ..., result)."""
NAMED_TYPE = "ENUM"
"""The word, reserved in GoogleSQL, before a string that is the name of a message or an enum."""
PARSER_FAULTS = (ValueError, TypeError, AttributeError, IndexError, KeyError)
"""What sqlglot raises by mistake, instead of an error of its own, for some broken statements."""

KEPT_FUNCTIONS = ("ARRAY", "STRUCT")
SEQUENCE_FUNCTIONS = ("GET_NEXT_SEQUENCE_VALUE", "GET_INTERNAL_SEQUENCE_STATE")
KEPT_PARSERS = ("ARRAY", "CAST", "SAFE_CAST", "EXTRACT")


TYPED_LITERAL = "spanner_literal"
"""Key in ``Cast.meta``: what is cast is a literal with its type before it, as DATE '...'."""
TYPED_CONSTRUCTOR = "spanner_constructor"
"""Key in ``Cast.meta``: it is ARRAY<T>[...] or STRUCT<T>(...)."""
PLUS_FUNCTION = "$PLUS"
"""The function that stands for + before an operand."""

ARRAY_ITSELF: dict[str, Any] = {"ARRAY": exp.Array}
TYPES_OF_LITERALS = (
    exp.DataType.Type.DATE,
    exp.DataType.Type.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ,
    exp.DataType.Type.DECIMAL,
)
WORDS_OF_LITERALS = {"DATE", "TIMESTAMP", "NUMERIC", "DECIMAL", "JSON"}
HINT_ENDS = {TokenType.COMMA, TokenType.R_BRACE}


def keep_typed_literal(parser: Any, literal: exp.Expr, type_: exp.DataType) -> exp.Cast:
    """DATE '...': a CAST that knows that it is a literal."""
    cast: exp.Cast = parser.expression(exp.Cast(this=literal, to=type_))
    cast.meta[TYPED_LITERAL] = True
    return cast


def keep_plus(parser: Any) -> exp.Anonymous:
    """+x, which sqlglot takes for x."""
    operand = parser._parse_unary()
    plus: exp.Anonymous = parser.expression(
        exp.Anonymous(this=PLUS_FUNCTION, expressions=[operand])
    )
    return plus


class SpannerDialect(BigQuery):
    """The dialect."""

    class Tokenizer(BigQuery.Tokenizer):
        """BigQuery's tokens, and the types that BigQuery lacks."""

        KEYWORDS: ClassVar[dict[str, Any]] = {
            **BigQuery.Tokenizer.KEYWORDS,
            "FLOAT32": TokenType.FLOAT,
            "UUID": TokenType.UUID,
            NAMED_TYPE: TokenType.ENUM,
        }

    class Parser(BigQuery.Parser):  # type: ignore[misc, valid-type]
        """BigQuery's parser with table hints, and without its knowledge of functions."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {
            name: BigQuery.Parser.FUNCTIONS[name] for name in KEPT_FUNCTIONS
        }
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: BigQuery.Parser.FUNCTION_PARSERS[name] for name in KEPT_PARSERS
        }
        UNARY_PARSERS: ClassVar[dict[Any, Any]] = {
            **BigQuery.Parser.UNARY_PARSERS,
            TokenType.PLUS: keep_plus,
        }
        TYPE_LITERAL_PARSERS: ClassVar[dict[Any, Any]] = {
            **BigQuery.Parser.TYPE_LITERAL_PARSERS,
            **dict.fromkeys(TYPES_OF_LITERALS, keep_typed_literal),
        }
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
        ID_VAR_TOKENS: ClassVar[set[Any]] = {
            *BigQuery.Parser.ID_VAR_TOKENS,
            *(TokenType.ALTER, TokenType.DROP, TokenType.INSERT),
        }

        def _parse_types(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
            if self._match_pair(TokenType.ENUM, TokenType.STRING):
                return exp.DataType(this=exp.DataType.Type.USERDEFINED, kind=self._prev.text)
            if self._match_pair(TokenType.STRUCT, TokenType.L_PAREN, advance=False):
                # A value. Read as a type first, each STRUCT(STRUCT(... would take twice the time.
                return None
            type_: exp.Expr | None = super()._parse_types(*args, **kwargs)
            if isinstance(type_, exp.Cast):
                type_.meta[TYPED_CONSTRUCTOR] = True
            return type_

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

        def _parse_table(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
            table: exp.Expr | None = super()._parse_table(*args, **kwargs)
            if isinstance(table, exp.Table) and self._match_pair(TokenType.WITH, TokenType.OFFSET):
                self._match(TokenType.ALIAS)
                name = self._parse_id_var(any_token=False, tokens=self.UNNEST_OFFSET_ALIAS_TOKENS)
                table.meta[OFFSET] = name or exp.to_identifier("offset")
            return table

        def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
            """An element of a column; only ARRAY itself, unquoted, begins an array of its own."""
            bare = this is None or (
                isinstance(this, exp.Column | exp.Identifier)
                and len(this.parts if isinstance(this, exp.Column) else [this]) == 1
                and not this.find(exp.Identifier, bfs=True).quoted  # type: ignore[union-attr]
                and this.name.upper() == "ARRAY"
            )
            self.ARRAY_CONSTRUCTORS = ARRAY_ITSELF if bare else {}
            bracket: exp.Expr | None = super()._parse_bracket(this)
            self.ARRAY_CONSTRUCTORS = ARRAY_ITSELF
            return bracket

        def _implicit_unnests_to_explicit(self, this: Any) -> Any:
            """Paths to arrays stay tables: only the compiler knows which they are."""
            return this

        def _parse_primary(self) -> exp.Expr | None:
            if self._match_pair(TokenType.WITH, TokenType.L_PAREN):
                items: list[exp.Expr] = []
                while self._next and self._next.token_type is TokenType.ALIAS:
                    name = self._parse_id_var()
                    self._match(TokenType.ALIAS)
                    items.append(exp.Alias(this=self._parse_disjunction(), alias=name))
                    if not self._match(TokenType.COMMA):
                        self.raise_error("Expected a comma and the result of WITH(...)")
                items.append(self._parse_disjunction())
                self._match_r_paren()
                return exp.Anonymous(this=WITH_EXPRESSION, expressions=items)
            primary: exp.Expr | None = super()._parse_primary()
            return primary

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
            start = self._curr
            depth = 0
            while self._curr and (depth or self._curr.token_type not in HINT_ENDS):
                depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(self._curr.token_type, 0)
                self._advance()
            if start is None or not self._curr:
                self.raise_error("Expected a value in a hint")
            hints[name] = self.sql[start.start : self._prev.end + 1]
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


KeywordHints = list[tuple[str, dict[str, str]]]


@dataclass(frozen=True, slots=True)
class Parsed:
    """A statement, and the clauses that sqlglot cannot represent.

    ``conflict`` is "" (plain INSERT), "update" or "ignore". ``returning`` is None where THEN RETURN
    is missing; ``action`` is the name of its column WITH ACTION. ``on_conflict_update`` is the
    UPDATE of ``on_conflict``. ``keyword_hints`` are those behind a keyword or a call, which stands
    with them. ``asserted_rows`` is the number of ASSERT_ROWS_MODIFIED.
    """

    tree: exp.Expr
    conflict: str = ""
    returning: tuple[exp.Expr, ...] | None = None
    hints: dict[str, str] = field(default_factory=dict)
    action: str | None = None
    on_conflict: ConflictClause | None = None
    on_conflict_update: exp.Expr | None = None
    keyword_hints: KeywordHints = field(default_factory=list)
    asserted_rows: int | None = None


def parse_query(sql: str) -> Parsed:
    """Parses one query or DML statement.

    Raises DdlSyntaxError with line and column; several statements are an error.
    """
    tokens = list(tokenize(sql))
    while len(tokens) > 1 and tokens[-2].text == ";":
        del tokens[-2]
    text, hints, others = cut_hints(sql[: tokens[-2].end if len(tokens) > 1 else 0], tokens)
    text = cut_sequences(text, tokens)
    text, conflict = cut_mode(text, tokens)
    text, asserted_rows = cut_asserted_rows(text, tokens)
    text, returned, action = cut_returning(text, tokens)
    text, clause = cut_on_conflict(text, tokens) if is_insert(tokens) else (text, None)
    text = adapt_names(text, tokens)
    tree = parse_one(text, sql)
    returning = None
    if returned is not None:
        select = parse_one("SELECT " + returned, sql)
        returning = tuple(select.expressions)
    update = parse_update(clause, sql)
    return Parsed(tree, conflict, returning, hints, action, clause, update, others, asserted_rows)


def adapt_names(text: str, tokens: list[Token]) -> str:
    """What sqlglot does not know: STRUCT<>, a field called array before [, raw BYTES and raw
    literals behind their type, as JSON r'...'."""
    for before, word, behind in reversed(list(zip(tokens, tokens[1:], tokens[2:], strict=False))):
        if word.start >= len(text):
            continue
        if word.kind is TokenKind.STRING and word.text[:2].upper() in {"RB", "BR"}:
            text = text[: word.start] + escape_raw(word.text[2:]) + text[word.end :]
        if is_typed_raw_literal(before, word):
            text = text[: word.start] + escape_raw(word.text[1:])[1:] + text[word.end :]
        name = word.text.upper()
        if name == "STRUCT" and behind.text == "<>":
            text = blank_out(text, behind.start, behind.end)
        elif before.text == "." and name in {"ARRAY", "STRUCT"} and behind.text == "[":
            text = f"{text[: word.start]}`{word.text}`{text[word.end :]}"
    return text


def is_typed_raw_literal(before: Token, word: Token) -> bool:
    """Whether a token is the r'...' of JSON r'...' and the like."""
    is_raw = word.kind is TokenKind.STRING and word.text[0] in {"r", "R"}
    return is_raw and word.text[1] in "'\"" and before.text.upper() in WORDS_OF_LITERALS


def escape_raw(quoted: str) -> str:
    """A raw literal of BYTES, without its prefix, as one with escapes."""
    mark = quoted[:3] if quoted[:3] in {"'''", '"""'} else quoted[0]
    inside = quoted[len(mark) : -len(mark)].replace("\\", "\\\\")
    return f"b{mark}{inside.replace(mark[0], chr(92) + mark[0])}{mark}"


def is_insert(tokens: list[Token]) -> bool:
    """Whether a statement, its hints aside, is an INSERT."""
    words = (each.text.upper() for each in tokens if each.kind is TokenKind.WORD)
    return any(word == "INSERT" for word in list(words)[:8])


def parse_update(clause: ConflictClause | None, sql: str) -> exp.Expr | None:
    """DO UPDATE SET ... [WHERE ...] as an UPDATE of a table without a name."""
    if clause is None or clause.update is None:
        return None
    return parse_one("UPDATE `$target` " + clause.update, sql)


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


def cut_hints(text: str, tokens: list[Token]) -> tuple[str, dict[str, str], KeywordHints]:
    """Blanks out hints of the statement, of keywords and of calls; those of tables stay."""
    hints: dict[str, str] = {}
    others: KeywordHints = []
    position = 0
    while position < len(tokens):
        if tokens[position].text == "@{":
            end = position
            while tokens[end].text != "}":
                if tokens[end].kind is TokenKind.END:
                    missing_at = locate(text, tokens[end].start)
                    raise DdlSyntaxError(*missing_at, "}", "the end of the statement")
                end += 1
            before = tokens[position - 1].text.upper() if position else ""
            if before in {"", "JOIN", "GROUP", "BY", "SELECT", ")"}:
                listed = read_hints([t.text for t in tokens[position + 1 : end]])
                if before:
                    others.append((before, listed))
                else:
                    hints |= listed
                text = blank_out(text, tokens[position].start, tokens[end].end)
            position = end
        position += 1
    return text, hints, others


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
