"""The page of SQL functions that the embedded server has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from emulator.sql.aggregates import AGGREGATE_CALLS
from emulator.sql.calls import SPECIAL, UNSUPPORTED
from emulator.sql.functions.served import Signature, Signatures
from emulator.sql.postgres import functions as postgres
from emulator.sql.postgres.expression_trees import POSTGRES_AGGREGATES
from emulator.sql.postgres.type_names import show_type
from emulator.sql.signatures import SIGNATURES
from emulator.sql.types import name_of
from emulator.sql.window_functions import WINDOW_FUNCTIONS
from reference_pages.markdown import code, make_page, make_table
from spanner_schema.model.column_types import Type

ShowType = Callable[[Type], str]


def show_overload(name: str, signature: Signature, show: ShowType) -> str:
    """A call as documentation writes it, with its result."""
    types = [show(each) for each in signature.arguments]
    needed = len(types) - signature.optional
    listed = [*types[:needed], *(f"[{each}]" for each in types[needed:])]
    if signature.rest:
        listed.append("...")
    return code(f"{name}({', '.join(listed)}) -> {show(signature.result)}")


def list_overloads(
    signatures: Signatures, show: ShowType, spell: Callable[[str], str]
) -> Iterator[tuple[str]]:
    """The functions in the order of their names, each with its overloads."""
    for name in sorted(signatures):
        overloads = dict.fromkeys(show_overload(spell(name), s, show) for s in signatures[name])
        yield (", ".join(overloads),)


def list_names(names: Iterable[str], spell: Callable[[str], str]) -> str:
    """Names that a statement can write, in order."""
    return ", ".join(code(spell(name)) for name in sorted(names) if is_written(name))


def is_written(name: str) -> bool:
    """Whether it is a function's name, not that of an operator or of the compiler's own."""
    return name.replace(".", "").replace("_", "").isalnum()


def describe_dialect(
    title: str,
    signatures: Signatures,
    others: Mapping[str, Iterable[str]],
    show: ShowType,
    spell: Callable[[str], str],
) -> list[str]:
    """The section of a dialect."""
    lines = [f"## {title}", ""]
    for kind, names in others.items():
        lines += [f"{kind}: {list_names(names, spell)}.", ""]
    return [
        *lines,
        *make_table(("functions of plain types",), list_overloads(signatures, show, spell)),
    ]


def make_functions_page() -> str:
    """docs/reference/sql-functions.md."""
    googlesql: dict[str, Iterable[str]] = {
        "Aggregates": AGGREGATE_CALLS,
        "Window functions": WINDOW_FUNCTIONS,
        "Functions whose types follow from their arguments, or that take names or parts": SPECIAL,
        "UNIMPLEMENTED, although Spanner has them": UNSUPPORTED.split(),
    }
    postgresql: dict[str, Iterable[str]] = {
        "Aggregates": POSTGRES_AGGREGATES,
        "Functions whose types follow from their arguments, or that take names": postgres.CALLS,
        "UNIMPLEMENTED, although Spanner has them": postgres.UNSUPPORTED.split(),
    }
    return make_page(
        "SQL functions of the embedded server",
        "What queries may call in the [embedded server](../emulator.md#sql), by dialect."
        " Arguments in brackets may be left out. Operators and casts are not listed.",
        "",
        *describe_dialect("GoogleSQL", SIGNATURES, googlesql, name_of, str),
        *describe_dialect("PostgreSQL", postgres.SIGNATURES, postgresql, show_type, str.lower),
    )
