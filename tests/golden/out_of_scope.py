"""The cases that are not Spanner's, or not this server's, each with its reason: the one place."""

from __future__ import annotations

PRECEDENCE = "a dot after IS NULL or IN (...) reads a field of the comparison: nobody writes it"

OUT_OF_SCOPE = {
    "grammar/chained_function_calls.test:725": PRECEDENCE,
    "grammar/chained_function_calls.test:819": PRECEDENCE,
    "grammar/floating_point_literals.test:323": "1.E0x1 is the number 1. with the alias E0x1",
}
