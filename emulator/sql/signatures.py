"""Calls of plain functions: which overload the arguments fit."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from emulator import errors
from emulator.sql.coerce import coerce
from emulator.sql.functions import GOOGLESQL
from emulator.sql.functions.served import Signature, merge_signatures
from emulator.sql.native_calls import render_call
from emulator.sql.scope import Context
from emulator.sql.types import Typed, name_of
from emulator.values.types import FLOAT64, NUMERIC

SIGNATURES = merge_signatures([module.SERVED.signatures for module in GOOGLESQL])


def overload(name: str, items: list[Typed], context: Context) -> Typed:
    """The first signature that the arguments fit, exactly or by conversion."""
    fitting = [s for s in SIGNATURES[name] if s.fits(len(items)) and not is_forced(s, items)]
    for signature in sorted(fitting, key=lambda s: conversions(s, items)):
        types = signature.argument_types(len(items))
        converted = [coerce(i, t, context) for i, t in zip(items, types, strict=True)]
        arguments = [each.sql for each in converted if each is not None]
        if len(arguments) == len(converted):
            return Typed(render_call(signature.function, arguments), signature.result)
    types_given = ", ".join(name_of(item.type) for item in items)
    raise errors.invalid_argument(
        f"No matching signature for function {name} for argument types: {types_given}"
    )


def place_arguments(name: str, given: Sequence[exp.Expr]) -> list[exp.Expr]:
    """The arguments of a call in the order of its signature: those with a name come last."""
    placed = [each for each in given if not isinstance(each, exp.Kwarg)]
    for each in given[len(placed) :]:
        signature = SIGNATURES[name][0]
        word = each.this.name.lower() if isinstance(each, exp.Kwarg) else ""
        first = len(signature.arguments) - len(signature.named)
        if word not in signature.named or first + signature.named.index(word) != len(placed):
            raise errors.invalid_argument(f"{name} has no argument {word or 'behind a named one'}")
        placed.append(each.expression)
    return placed


def is_forced(signature: Signature, items: list[Typed]) -> bool:
    """Whether only literals of FLOAT64 would become NUMERIC: they do so beside a NUMERIC."""
    pairs = list(zip(items, signature.argument_types(len(items)), strict=True))
    floats = any(item.type == FLOAT64 and type_ == NUMERIC for item, type_ in pairs)
    return floats and all(item.type != NUMERIC for item, _ in pairs)


def conversions(signature: Signature, items: list[Typed]) -> int:
    """How many arguments are of another type: a literal, which converts easily, counts less."""
    types = signature.argument_types(len(items))
    return sum(
        1 if item.literal is not None else 10
        for item, type_ in zip(items, types, strict=True)
        if item.type is not None and item.type != type_
    )
