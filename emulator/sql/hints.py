"""Hints: which there are, and which are meant for another engine."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping

from emulator import errors
from emulator.sql.grammar.hints import JOIN_HINTS
from spanner_schema.model.errors import DdlSyntaxError
from spanner_schema.model.schema import Dialect, Schema
from spanner_schema.syntax.tokens import Token, TokenKind, tokenize

ENGINE = "SPANNER."
KEYWORD_HINTS: Mapping[str, Collection[str]] = {
    "JOIN": JOIN_HINTS,
    "GROUP": {"GROUP_METHOD", "GROUP_TYPE"},
    ")": {"DISABLE_INLINE"},
}
"""The hints behind a keyword, or behind a call."""


FORCE_INDEX = "FORCE_INDEX"
BASE_TABLE = "_BASE_TABLE"
OPTIMIZER_VERSION = "OPTIMIZER_VERSION"
STATISTICS_PACKAGE = "OPTIMIZER_STATISTICS_PACKAGE"
OPTIMIZER_VERSIONS_MAX = 9
LATEST_PACKAGE = {"", "latest"}
OPTIMIZER_WORDS = {"", "latest", "latest_version", "default", "default_version"}


def check_optimizer_version(text: str) -> None:
    """A version of the query optimizer, of a hint, an option or a request.

    Raises INVALID_ARGUMENT for one that there is not.
    """
    version = text.strip().casefold()
    known = version in OPTIMIZER_WORDS or (
        version.isascii() and version.isdigit() and 1 <= int(version[:9]) <= OPTIMIZER_VERSIONS_MAX
    )
    if not known:
        raise errors.invalid_argument(f"Query optimizer version: {text} is not supported")


def check_statistics_package(name: str, packages: Container[str]) -> None:
    """A package of optimizer statistics that the database has. Raises INVALID_ARGUMENT."""
    if name.strip().casefold() not in LATEST_PACKAGE and name not in packages:
        raise errors.invalid_argument(f"Requested optimizer statistics package not found: {name}.")


def check_package_hint(name: str, schema: Schema) -> None:
    """A package that a query may name: one that is not collected while it is used.

    Raises INVALID_ARGUMENT.
    """
    check_statistics_package(name, schema.statistics)
    pinned = schema.options.get(STATISTICS_PACKAGE.lower(), "").strip("'\"")
    if schema.statistics.get(name, False) and name != pinned:
        raise errors.invalid_argument(
            f"Requested optimizer statistics package {name} may be garbage collected: set"
            " allow_gc = false by ALTER STATISTICS, or name it in the options of the database."
        )


def check_statement_hints(
    hints: Mapping[str, str], supported: Collection[str], schema: Schema
) -> None:
    """The hints before a statement. Raises INVALID_ARGUMENT for a name, a version or a package of
    statistics that Spanner does not know."""
    accepted = check_hints(hints, supported)
    check_optimizer_version(accepted.get(OPTIMIZER_VERSION, "").strip("'\""))
    check_package_hint(accepted.get(STATISTICS_PACKAGE, "").strip("'\"`"), schema)
    index = accepted.get(FORCE_INDEX, BASE_TABLE).strip("'\"`")
    if index.upper() != BASE_TABLE:
        raise errors.invalid_argument(f"Invalid statement-level hint value: force_index={index}.")


def check_keyword_hints(hints: Iterable[tuple[str, Mapping[str, str]]]) -> None:
    """Checks hints that are not those of a statement or a table: pairs of what is before, hints."""
    for keyword, listed in hints:
        check_hints(listed, KEYWORD_HINTS.get(keyword, ()))


def check_hints(hints: Mapping[str, str], supported: Collection[str]) -> dict[str, str]:
    """The hints for Spanner by their plain names; those of other engines are passed over.

    Raises INVALID_ARGUMENT for one that Spanner does not know.
    """
    accepted: dict[str, str] = {}
    for written, value in hints.items():
        name = written.removeprefix(ENGINE)
        if "." in name:
            continue
        if name not in supported:
            raise errors.invalid_argument(f"Unsupported hint: {name}.")
        accepted[name] = value
    return accepted


def read_value(written: str, dialect: Dialect) -> str:
    """The name or the text that the value of a hint means: one identifier, quoted or not, or one
    string literal.

    Spanner: a path of several names is none of them. Raises INVALID_ARGUMENT.
    """
    try:
        token, *more = tokenize(written, dialect)
    except DdlSyntaxError as error:
        raise errors.invalid_argument(
            f"Syntax error: invalid value of a hint: {written}"
        ) from error
    if len(more) == 1 and token.kind is TokenKind.STRING:
        return read_text(token, dialect)
    if len(more) != 1 and token.kind in {TokenKind.WORD, TokenKind.QUOTED}:
        raise errors.invalid_argument(
            "Too many names in hint value; if a string is intended, please enclose it with"
            " quotation marks"
            if dialect is Dialect.POSTGRESQL
            else f"Unrecognized name: {token.value}"
        )
    return token.value if len(more) == 1 else written


def read_text(token: Token, dialect: Dialect) -> str:
    """The text of a string literal that has no escapes, which no name needs."""
    if dialect is Dialect.POSTGRESQL:
        return token.text.lstrip("eE")[1:-1].replace("''", "'")
    text = token.text.lstrip("rR")
    marks = 3 if text[:3] in {"'''", '"""'} else 1
    return text[marks:-marks]
