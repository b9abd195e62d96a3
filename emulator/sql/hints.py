"""Hints: which there are, and which are meant for another engine."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from emulator import errors

ENGINE = "SPANNER."
JOIN_HINTS = {
    "FORCE_JOIN_ORDER",
    "JOIN_METHOD",
    "JOIN_TYPE",
    "HASH_JOIN_BUILD_SIDE",
    "HASH_JOIN_EXECUTION",
    "BATCH_MODE",
}
KEYWORD_HINTS: Mapping[str, Collection[str]] = {
    "JOIN": JOIN_HINTS,
    "GROUP": {"GROUP_METHOD", "GROUP_TYPE"},
    ")": {"DISABLE_INLINE"},
}
"""The hints behind a keyword, or behind a call."""


OPTIMIZER_VERSION = "OPTIMIZER_VERSION"
STATISTICS_PACKAGE = "OPTIMIZER_STATISTICS_PACKAGE"
OPTIMIZER_VERSIONS_MAX = 9
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


def check_statistics_package(name: str) -> None:
    """A package of optimizer statistics: no database here has one. Raises INVALID_ARGUMENT."""
    if name.strip().casefold() not in {"", "latest"}:
        raise errors.invalid_argument(f"Requested optimizer statistics package not found: {name}.")


def check_statement_hints(hints: Mapping[str, str], supported: Collection[str]) -> None:
    """The hints before a statement. Raises INVALID_ARGUMENT for a name or a version that Spanner
    does not know."""
    accepted = check_hints(hints, supported)
    check_optimizer_version(accepted.get(OPTIMIZER_VERSION, "").strip("'\""))
    check_statistics_package(accepted.get(STATISTICS_PACKAGE, "").strip("'\"`"))


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
