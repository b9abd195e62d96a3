"""A cursor over tokens: the small words of which the grammar is written."""

from __future__ import annotations

from typing import NoReturn

from ddl.errors import DdlSyntaxError
from ddl.schema import Dialect
from ddl.tokens import Kind, Token, place, tokenize


class Reader:
    """Reads one statement. ``accept`` takes what may come, ``expect`` what must."""

    def __init__(self, text: str, dialect: Dialect = Dialect.GOOGLESQL) -> None:
        self.text = text
        self._tokens = list(tokenize(text, dialect))
        self._position = 0

    @property
    def token(self) -> Token:
        """The next token."""
        return self._tokens[self._position]

    def peek(self, *words: str) -> bool:
        """True when the next tokens are these keywords or symbols."""
        ahead = self._tokens[self._position : self._position + len(words)]
        return len(ahead) == len(words) and all(
            token.kind in {Kind.WORD, Kind.SYMBOL} and token.text.upper() == word
            for token, word in zip(ahead, words, strict=True)
        )

    def advance(self) -> Token:
        """Takes the next token whatever it is."""
        token = self.token
        if token.kind is not Kind.END:
            self._position += 1
        return token

    def accept(self, *words: str) -> bool:
        """Takes these keywords or symbols if they are next."""
        if not self.peek(*words):
            return False
        self._position += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Takes these keywords or symbols; anything else is a syntax error."""
        for word in words:
            if not self.accept(word):
                self.fail(word)

    def fail(self, expected: str) -> NoReturn:
        """Raises DdlSyntaxError at the next token."""
        token = self.token
        found = token.kind.value if token.kind is Kind.END else repr(token.text)
        raise DdlSyntaxError(*place(self.text, token.start), expected, found)

    def name(self, what: str = "a name") -> str:
        """A name, quoted or not."""
        if self.token.kind not in {Kind.WORD, Kind.QUOTED}:
            self.fail(what)
        return self.advance().value

    def path(self, what: str = "a name") -> str:
        """A name with its named schema, if any."""
        parts = [self.name(what)]
        while self.accept("."):
            parts.append(self.name(what))
        return ".".join(parts)

    def names(self) -> tuple[str, ...]:
        """Names in parentheses, separated by commas; may be none."""
        self.expect("(")
        found = []
        while not self.accept(")"):
            found.append(self.name("a column name"))
            if not self.peek(")"):
                self.expect(",")
        return tuple(found)

    def number(self) -> int:
        """A whole number, maybe with a sign."""
        sign = -1 if self.accept("-") else 1
        if self.token.kind is not Kind.NUMBER:
            self.fail("a number")
        return sign * int(self.advance().text, 0)

    def parenthesised(self) -> str:
        """The text between balanced parentheses, as written."""
        self.expect("(")
        start, depth = self.token.start, 1
        while depth:
            token = self.advance()
            if token.kind is Kind.END:
                self.fail("')'")
            depth += {"(": 1, ")": -1}.get(token.text, 0) if token.kind is Kind.SYMBOL else 0
        return self.text[start : token.start].strip()

    def mark(self) -> int:
        """The place of the cursor, for ``reset``."""
        return self._position

    def reset(self, mark: int) -> None:
        """Goes back to a place."""
        self._position = mark

    def rest(self) -> str:
        """Everything up to the end of the statement, as written."""
        start = self.token.start
        self._position = len(self._tokens) - 1
        return self.text[start:].strip()

    def end(self) -> None:
        """Nothing may follow."""
        if self.token.kind is not Kind.END:
            self.fail("the end of the statement")
