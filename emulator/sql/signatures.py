"""Calls of plain functions: which overload the arguments fit."""

from __future__ import annotations

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
