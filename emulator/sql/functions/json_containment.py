"""Whether a JSON document has all that another has: JSON_CONTAINS, and @> of jsonb."""

from __future__ import annotations

from emulator.sql.functions.callers import check_caller


def contains_document(outer: object, inner: object) -> bool:
    """A top-level array contains a scalar, too."""
    if isinstance(outer, list) and not isinstance(inner, list | dict):
        return contains(outer, [inner])
    return contains(outer, inner)


def contains(outer: object, inner: object) -> bool:
    """Objects by their members, arrays by their elements in any order; true is not 1."""
    if isinstance(inner, dict):
        return isinstance(outer, dict) and all(
            key in outer and contains(outer[key], each) for key, each in inner.items()
        )
    if isinstance(inner, list):
        return isinstance(outer, list) and contains_elements(outer, inner)
    return not isinstance(outer, list | dict) and scalar_key(outer) == scalar_key(inner)


def contains_elements(outer: list[object], inner: list[object]) -> bool:
    """Scalars are looked up; objects and arrays are compared each with each: that may take long."""
    scalars = {scalar_key(each) for each in outer if not isinstance(each, list | dict)}
    nested = [each for each in outer if isinstance(each, list | dict)]
    for wanted in inner:
        if not isinstance(wanted, list | dict):
            if scalar_key(wanted) not in scalars:
                return False
            continue
        check_caller()
        if not any(contains(each, wanted) for each in nested):
            return False
    return True


def scalar_key(value: object) -> tuple[bool, object]:
    """A scalar as it is compared."""
    return isinstance(value, bool), value
