"""A cursor over tokens: the small verbs of which the grammar is written."""

from __future__ import annotations

from collections.abc import Collection
from typing import NoReturn

from spanner_schema.model.errors import DdlSyntaxError
from spanner_schema.model.names import DEFAULT_SCHEMA
from spanner_schema.model.schema import Dialect
from spanner_schema.syntax.tokens import Token, TokenKind, locate, tokenize

"""The schema of the PostgreSQL dialect whose name may be left out."""


class TokenReader:
    """Reads one statement. ``accept`` takes what may come, ``expect`` what must.

    ``type_names`` are the types of the database's proto bundle. With ``reserved`` words the reader
    is strict, as Spanner is: these are no names unless they are quoted, a list does not end in a
    comma, and nothing is said twice. Every method that reads raises DdlSyntaxError for anything
    else than what it reads.
    """

    def __init__(
        self,
        text: str,
        dialect: Dialect = Dialect.GOOGLESQL,
        type_names: Collection[str] = (),
        reserved: Collection[str] = (),
    ) -> None:
        self.text = text
        self.type_names = type_names
        self.dialect = dialect
        self._reserved = reserved
        self._tokens = list(tokenize(text, dialect))
        self._position = 0

    @property
    def is_strict(self) -> bool:
        """Whether to refuse what Spanner refuses and no statement of Spanner's own has."""
        return bool(self._reserved)

    @property
    def token(self) -> Token:
        """The next token."""
        return self._tokens[self._position]

    def peek(self, *words: str) -> bool:
        """True when the next tokens are these keywords or symbols."""
        ahead = self._tokens[self._position : self._position + len(words)]
        return len(ahead) == len(words) and all(
            token.kind in {TokenKind.WORD, TokenKind.SYMBOL} and token.text.upper() == word
            for token, word in zip(ahead, words, strict=True)
        )

    def advance(self) -> Token:
        """Takes the next token whatever it is."""
        token = self.token
        if token.kind is not TokenKind.END:
            self._position += 1
        return token

    def accept(self, *words: str) -> bool:
        """Takes these keywords or symbols if they are next."""
        if not self.peek(*words):
            return False
        self._position += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Takes these keywords or symbols."""
        for word in words:
            if not self.accept(word):
                self.fail(word)

    def expect_end(self) -> None:
        """Checks that nothing follows."""
        if self.token.kind is not TokenKind.END:
            self.fail("the end of the statement")

    def fail(self, expected: str) -> NoReturn:
        """Raises DdlSyntaxError at the next token."""
        token = self.token
        actual = token.kind.value if token.kind is TokenKind.END else repr(token.text)
        raise DdlSyntaxError(*locate(self.text, token.start), expected, actual)

    def read_name(self, expected: str = "a name") -> str:
        """A name, quoted or not; returned without its quotes."""
        token = self.token
        if token.kind not in {TokenKind.WORD, TokenKind.QUOTED}:
            self.fail(expected)
        if token.kind is TokenKind.WORD and token.text.upper() in self._reserved:
            self.fail(expected)
        return self.advance().value

    def read_path(self, expected: str = "a name") -> str:
        """A name with its named schema, if any."""
        parts = [self.read_name(expected)]
        while self.accept("."):
            parts.append(self.read_name(expected))
        if self.dialect is Dialect.POSTGRESQL and len(parts) == 2 and parts[0] == DEFAULT_SCHEMA:
            return parts[1]
        return ".".join(parts)

    def read_names(self) -> tuple[str, ...]:
        """Column names in parentheses, separated by commas; there may be none."""
        self.expect("(")
        names = []
        while not self.accept(")"):
            names.append(self.read_name("a column name"))
            self.expect_more()
        return tuple(names)

    def expect_more(self) -> None:
        """A comma between the items of a list, unless the list ends here."""
        if self.peek(")"):
            return
        self.expect(",")
        if self.is_strict and self.peek(")"):
            self.fail("a name")

    def read_number(self) -> int:
        """A whole number, maybe with a sign."""
        sign = -1 if self.accept("-") else 1
        if self.token.kind is not TokenKind.NUMBER:
            self.fail("a number")
        try:
            number = int(self.token.text, 0)
        except ValueError:
            self.fail("a whole number")
        self.advance()
        return sign * number

    def read_parenthesized(self) -> str:
        """The text between balanced parentheses, as written."""
        self.expect("(")
        start, depth = self.token.start, 1
        while depth:
            token = self.advance()
            if token.kind is TokenKind.END:
                self.fail("')'")
            depth += {"(": 1, ")": -1}.get(token.text, 0) if token.kind is TokenKind.SYMBOL else 0
        return self.text[start : token.start].strip()

    def read_rest(self) -> str:
        """Everything up to the end of the statement, as written."""
        start = self.token.start
        self._position = len(self._tokens) - 1
        return self.text[start:].strip()

    def mark(self) -> int:
        """The position of the cursor, for ``reset``."""
        return self._position

    def reset(self, position: int) -> None:
        """Goes back to a position."""
        self._position = position
