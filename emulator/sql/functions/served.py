"""The plain functions: what a statement may call, of which types, and what runs then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spanner_schema.model.column_types import Type

Function = Callable[..., object]


@dataclass(frozen=True, slots=True)
class Signature:
    """Arguments in order; the last ``optional`` ones may be left out; ``rest`` repeats the last.
    ``function`` is its name in SQLite, ``named`` those of the last arguments, in small letters, if
    statements may give them by name."""

    arguments: tuple[Type, ...]
    result: Type
    function: str
    optional: int = 0
    rest: bool = False
    named: tuple[str, ...] = ()

    def argument_types(self, count: int) -> tuple[Type, ...]:
        """The types of the first ``count`` arguments."""
        if self.rest:
            return self.arguments + self.arguments[-1:] * (count - len(self.arguments))
        return self.arguments[:count]

    def fits(self, count: int) -> bool:
        """True when the number of arguments is right."""
        most = len(self.arguments)
        return most - self.optional <= count and (self.rest or count <= most)


Signatures = dict[str, list[Signature]]
"""Overloads by name, each in the order in which it is tried."""


class ServedFunctions:
    """The plain functions of a module. Each is one entry: names, types, implementation."""

    def __init__(self, prefix: str) -> None:
        """``prefix`` is of the names in SQLite: of GoogleSQL's ``fn_``, of PostgreSQL's ``pg_``."""
        self._prefix = prefix
        self.signatures: Signatures = {}
        self.shared: Signatures = {}
        """Those that the PostgreSQL dialect has too, by its names."""
        self.at_run_time: dict[str, Function] = {}
        """What runs, by the names in SQLite. NULL gives NULL."""

    def add(
        self,
        names: str,
        arguments: Sequence[Type],
        result: Type,
        run: Function | str,
        *,
        function: str = "",
        optional: int = 0,
        rest: bool = False,
        postgres: str = "",
        named: str = "",
    ) -> None:
        """One overload of a function with one or several names, and its name in ``postgres``.

        ``run`` is called with the values of the arguments, as ``values.forms`` stores them; a text
        is the name of a function that SQLite has already. Overloads that do the same have one name
        in SQLite: ``function``, or the first of ``names``. ``named`` are the names of the last
        arguments, where a statement may use them.
        """
        listed = names.split()
        name = function or f"{self._prefix}{listed[0].lower()}"
        if isinstance(run, str):
            name = run
        else:
            assert self.at_run_time.setdefault(name, run) is run, f"{name} is two functions"
        words = tuple(named.split())
        signature = Signature(tuple(arguments), result, name, optional, rest, words)
        for each in listed:
            self.signatures.setdefault(each, []).append(signature)
        if postgres:
            self.shared.setdefault(postgres, []).append(signature)


def merge_signatures(tables: Sequence[Signatures]) -> Signatures:
    """The overloads of all tables, in their order."""
    merged: Signatures = {}
    for table in tables:
        for name, overloads in table.items():
            merged.setdefault(name, []).extend(overloads)
    return merged
