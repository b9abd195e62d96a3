"""Differences that are not the server's faults, each with its reason: the one place."""

from __future__ import annotations

import re

from reference.answers import Comparison

REFERENCE_CANNOT = {
    r"^\[(INTERNAL|UNIMPLEMENTED)\]": "the reference is built without it",
    r"Unsupported hint: ": "the hints of Spanner's engine",
}
"""By a regular expression that the reference's refusal matches."""
NO_ROWS = re.compile(r"LIMIT 0\b")
DECIDED = re.compile(r"\b(AND|OR)\b")
"""An operand that another one has decided: GoogleSQL leaves open whether it is computed."""
FIELDS = re.compile(
    r"\) (NOT )?IN \(\(.*, \((1, 'a'|DATE '2020-01-01', 1.5)\)\)|STRUCT\(.*\) = STRUCT\("
)
"""A field of a struct behind one that has decided a comparison, which is the same."""
EMPTY_SIDE = re.compile(r"\bINTERSECT\b")
"""An empty side decides that nothing of the other one is needed."""
DROPPED = re.compile(r"SELECT \* EXCEPT \(v\)")
"""A column that the query around leaves out."""
EDGE_YEARS = re.compile(r"%c'.*(0001-01-01|9999-12-31)")


def find_reason(comparison: Comparison) -> str | None:
    """Why the answers may differ; None where they must not."""
    refusal = comparison.reference.refusal
    if refusal is None:
        edge = EDGE_YEARS.search(comparison.sql)
        return "the reference's C library writes the years of %c with four digits" if edge else None
    if comparison.server.refusal is None and refusal.startswith("[OUT_OF_RANGE]"):
        return find_uncomputed(comparison.sql)
    reasons = (why for words, why in REFERENCE_CANNOT.items() if re.search(words, refusal))
    return next(reasons, None)


def find_uncomputed(sql: str) -> str | None:
    """What the reference has computed, and refuses, although no result needs it."""
    if NO_ROWS.search(sql):
        return "the reference computes values of rows that LIMIT 0 leaves out"
    if sql.startswith("WITH "):
        return "the reference computes columns of WITH for rows that no result needs"
    if EMPTY_SIDE.search(sql):
        return "the reference computes a side of INTERSECT although the other one is empty"
    if DROPPED.search(sql):
        return "the reference computes columns that EXCEPT leaves out"
    if FIELDS.search(sql):
        return "the reference computes fields of structs that do not decide a comparison"
    if DECIDED.search(sql):
        return "the reference computes operands of AND and OR that do not decide the result"
    return None
