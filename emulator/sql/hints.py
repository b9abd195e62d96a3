"""Hints: which there are, and which are meant for another engine."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from emulator import errors

ENGINE = "SPANNER."


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
