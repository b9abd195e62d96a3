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
