"""What takes longer than its input grows: every function of SQL, and every regular expression.

A client may send 100 MB, and what one statement computes in C keeps the others waiting. So the work
for an input is compared with that for a quarter of it, in CPU time of the thread: four times as
much is linear, sixteen times is not. No time is asserted by itself.
"""

from __future__ import annotations

import ast
import functools
import importlib
import json
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import grpc
import pytest
from fixtures.attack_texts import attacks

import ddl.rules
import ddl.tracking
import emulator
import spanner_schema.model
import spanner_schema.syntax
from emulator.errors import SpannerError
from emulator.sql.functions import (
    MODULES,
    SEEING_NULL,
    arrays,
    postgres_arrays,
    postgres_json_members,
    postgres_patterns,
    postgres_text,
)
from emulator.sql.functions import json as json_functions
from emulator.sql.functions.callers import waiting
from emulator.sql.functions.regular_expressions import regexp_extract_all
from emulator.sql.googlesql.statement_trees import read_statement

NOTICED = 0.03
"""Seconds of CPU from which on growth is looked at."""
LINEAR, QUADRATIC = 4, 16
GROWTH_MAX = (LINEAR * QUADRATIC) ** 0.5
SMALL, LARGE = 2_000, 8_000


def cost(work: Callable[[], object]) -> float:
    """The least of three."""
    return min(cost_once(work) for _ in range(3))


def cost_once(work: Callable[[], object]) -> float:
    start = time.thread_time()
    work()
    return time.thread_time() - start


def grows(work: Callable[[int], Callable[[], object]]) -> bool:
    """Whether ``work(size)`` takes more than size does."""
    large = work(LARGE)
    if cost_once(large) < NOTICED or (most := cost(large)) < NOTICED:
        return False
    return bool(most > GROWTH_MAX * cost(work(SMALL)))


INPUTS: dict[str, Callable[[int], object]] = {
    "letters": lambda n: "a" * n,
    "blanks": lambda n: " " * n,
    "digits": lambda n: "9" * n,
    "bytes": lambda n: b"a" * n,
    "backslashes": lambda n: "\\" * n,
    "fraction": lambda n: "0." + "1" * n,
    "marks": lambda n: "a" + "\u0301\u0316" * (n // 2),
    "marks in pairs": lambda n: "a" + "\u0f73" * n,
    "integers": lambda n: json.dumps(list(range(n // 2)), separators=(",", ":")),
    "texts": lambda n: json.dumps([str(i) for i in range(n // 4)], separators=(",", ":")),
    "object": lambda n: json.dumps({f"k{i}": i for i in range(n // 8)}),
    "names": lambda n: "a." * (n // 2),
    "URL": lambda n: "http://" + "a." * (n // 2) + "/" + "a/" * (n // 2),
    "dots": lambda n: "a" + "." * n + "a",
    "interval": lambda n: "1 day " * (n // 6),
    "template": lambda n: "YYYY9," * (n // 6),
    "format": lambda n: "%d " * (n // 3),
    "path": lambda n: "$" + ".a" * (n // 2),
    "literal": lambda n: "{" + "a," * (n // 2) + "a}",
    "number": lambda n: n,
}
COMPANIONS: tuple[object, ...] = (1, "a", "$", "[1]")


@functools.cache
def made(kind: str, size: int) -> object:
    return INPUTS[kind](size)


def function_calls() -> Iterator[Callable[[int], tuple[object, ...]]]:
    """Arguments of which one grows, beside short ones."""
    for kind in INPUTS:
        yield lambda n, k=kind: (made(k, n),)  # type: ignore[misc]
        for short in COMPANIONS:
            yield lambda n, k=kind, s=short: (made(k, n), s)  # type: ignore[misc]
            yield lambda n, k=kind, s=short: (s, made(k, n))  # type: ignore[misc]
            yield lambda n, k=kind, s=short: (made(k, n), s, s)  # type: ignore[misc]
            yield lambda n, k=kind, s=short: (s, s, made(k, n))  # type: ignore[misc]


def bind(
    function: Callable[..., object], make: Callable[[int], tuple[object, ...]], size: int
) -> Callable[[], object]:
    arguments = make(size)

    def call() -> object:
        try:
            return function(*arguments)
        except (SpannerError, RecursionError, TypeError, ValueError, ArithmeticError):
            return None
        except (AttributeError, LookupError, AssertionError):
            return None

    return call


@pytest.mark.parametrize("module", [*MODULES, None], ids=lambda m: m.__name__ if m else "NULL")
def test_functions_take_time_that_is_linear(module: ModuleType | None) -> None:
    """Arguments of wrong types are refused by Python, so that
    each kind may be tried."""
    functions = SEEING_NULL if module is None else module.FUNCTIONS
    slow = [
        (name, [str(each)[:20] for each in make(20)])
        for name, function in functions.items()
        for make in function_calls()
        if grows(lambda n, f=function, m=make: bind(f, m, n))  # type: ignore[misc]
    ]
    assert not slow


READERS = {"match", "fullmatch", "search", "finditer", "findall", "sub", "split"}
"""The methods of a pattern; the last four look for the next match until the end."""
SIZES = (16, 64, 256, 1_024, 4_096)
"""Small ones first: some patterns would take for ever."""


def list_patterns() -> list[tuple[str, re.Pattern[Any], list[str]]]:
    """The patterns of the server and of what it imports of ddl, with the methods that are used."""
    found: dict[str, tuple[str, re.Pattern[Any], set[str]]] = {}
    for package in (emulator, spanner_schema.model, ddl.rules, spanner_schema.syntax, ddl.tracking):
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if info.name.endswith("__main__"):
                continue
            module = importlib.import_module(info.name)
            patterns = {n: v for n, v in vars(module).items() if isinstance(v, re.Pattern)}
            used = methods_used(Path(str(module.__file__))) if patterns else {}
            for name, value in patterns.items():
                entry = found.setdefault(value.pattern, (f"{info.name}.{name}", value, set()))
                entry[2].update(used.get(name, ()))
    return [(name, each, sorted(used) or ["match"]) for name, each, used in found.values()]


def methods_used(path: Path) -> dict[str, set[str]]:
    """The methods that a module calls of its names."""
    used: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Attribute) or node.attr not in READERS:
            continue
        if isinstance(node.value, ast.Name):
            used.setdefault(node.value.id, set()).add(node.attr)
    return used


def read(pattern: re.Pattern[Any], method: str, text: str) -> Callable[[], object]:
    """One reading of a text."""
    given = text if isinstance(pattern.pattern, str) else text.encode("latin-1", "replace")
    if method in {"match", "fullmatch", "search"}:
        return lambda: getattr(pattern, method)(given)
    return lambda: list(pattern.finditer(given))


def grows_in_steps(pattern: re.Pattern[Any], method: str, attack: tuple[str, str, str]) -> bool:
    head, part, tail = attack
    before = 0.0
    for size in SIZES:
        work = read(pattern, method, head + part * size + tail)
        if (now := cost_once(work)) > NOTICED / 4:
            now = cost(work)
        if now > NOTICED / 4 and before and now > GROWTH_MAX * before:
            return True
        before = now
    return False


@pytest.mark.parametrize(("name", "pattern", "used"), list_patterns(), ids=lambda v: str(v)[:60])
def test_patterns_take_time_that_is_linear(
    name: str, pattern: re.Pattern[Any], used: list[str]
) -> None:
    slow = [
        (name, method, head, part)
        for head, part, tail in attacks(pattern)
        for method in used
        if grows_in_steps(pattern, method, (head, part, tail))
    ]
    assert not slow


def test_an_array_is_looked_through_in_linear_time() -> None:
    """Two arguments that grow may take their product where that has a limit; here they may not."""
    numbers, texts = INPUTS["integers"], INPUTS["texts"]
    contains = postgres_arrays.FUNCTIONS["pg_array_contains"]
    for function in (
        arrays.FUNCTIONS["fn_array_includes_all"],
        json_functions.FUNCTIONS["fn_json_contains"],
        postgres_json_members.FUNCTIONS["pg_json_contains"],
        lambda whole, part: contains(whole, part, "INT64"),
    ):
        for make in (numbers, texts):
            assert not grows(lambda n, f=function, m=make: partial(f, m(n), m(n)))  # type: ignore[misc]


def test_what_nobody_waits_for_ends_inside_of_a_function_and_of_a_text() -> None:
    """Every search reads to the end of the text: a call of a minute, and nothing of SQLite's."""

    def gone() -> None:
        raise SpannerError(grpc.StatusCode.CANCELLED, "The client cancelled the call.")

    with waiting(gone), pytest.raises(SpannerError, match="cancelled"):
        regexp_extract_all("a" * 1_000_000, "a.*b|a")
    with waiting(gone), pytest.raises(SpannerError, match="cancelled"):
        read_statement("SELECT 1" + "+1" * 100_000)


@pytest.mark.parametrize(
    "call",
    [
        lambda: postgres_text.FUNCTIONS["pg_repeat"]("a", 10**9),
        lambda: postgres_text.FUNCTIONS["pg_lpad"]("a", 10**9),
        lambda: postgres_text.FUNCTIONS["pg_replace"]("a" * 100_000, "a", "b" * 100_000),
        lambda: postgres_arrays.FUNCTIONS["pg_generate_series"](1, 10**12),
        lambda: postgres_arrays.FUNCTIONS["pg_array_to_string"](
            "[" + "1," * 10**5 + "1]", "INT64", "a" * 10**5
        ),
        lambda: arrays.FUNCTIONS["fn_array_to_string_bytes"]('["YQ==","YQ=="]', b"a" * 10**9),
        lambda: postgres_patterns.FUNCTIONS["pg_regexp_replace"](
            "a" * 10**5, "a", "b" * 10**5, "g"
        ),
        lambda: regexp_extract_all("a" * 10**6, "a" * 10**4),
    ],
    ids=range(8),
)
def test_what_would_take_all_memory_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(SpannerError) as refusal:
        call()
    assert refusal.value.code is grpc.StatusCode.OUT_OF_RANGE
