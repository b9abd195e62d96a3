"""Differences that are not the server's faults, each with its reason: the one place."""

from __future__ import annotations

import re
from collections.abc import Sequence

from reference.answers import Comparison

REFERENCE_CANNOT = {
    r"^\[(INTERNAL|UNIMPLEMENTED)\]": "the reference is built without it",
    r"Unsupported hint: ": "the hints of Spanner's engine",
}
"""By a regular expression that the reference's refusal matches."""
NO_ROWS = re.compile(r"LIMIT 0\b")
DECIDED = re.compile(r"\b(AND|OR|IN|ARRAY_INCLUDES)\b")
"""An operand that another one has decided: GoogleSQL leaves open whether it is computed."""
FIELDS = re.compile(
    r"\) (NOT )?IN \(\(.*, \((1, 'a'|DATE '2020-01-01', 1.5)\)\)|STRUCT\(.*\) = STRUCT\("
    r"|, .*\) (=|<>) \(.*, |STRUCT\(.*\)\.\w"
)
"""A field of a struct behind one that has decided a comparison, or that nobody asks for."""
EMPTY_SIDE = re.compile(r"\b(INTERSECT|EXCEPT DISTINCT)\b")
"""An empty side decides that nothing of the other one is needed."""
DROPPED = re.compile(r"SELECT \* EXCEPT \(v\)")
"""A column that the query around leaves out."""
EDGE_YEARS = re.compile(r"%c'.*(0001-01-01|9999-12-31)")
ENDLESS_MEAN = re.compile(r"\bAVG\(.*'-?inf'")
"""The reference's mean goes from value to value: infinite ones behind it make NaN."""
SPECIFIERS = re.compile(
    r"FORMAT_(DATE|TIMESTAMP)\('.*%([^A-Za-z%]|P|E\*?[^SYyzZ\d])|PARSE_DATE\('%F'"
)
LENIENT_JSON = re.compile(
    r"JSON_(VALUE|QUERY)(_ARRAY)?\('.*([\[,:]\s*[,\]}]|\[,|\\\\[^\"\\\\/bfnrtu])"
)
"""An item that is missing, or an escape that JSON has not."""
ZONE = re.compile(r"//|'[A-Z]+\d+'")
"""Another name of a time zone: a path, or POSIX."""
ROUNDED = re.compile(r"\b(CEIL|CEILING|FLOOR|ROUND|TRUNC)\(")
DROPPED_LATER = re.compile(r"\|> .*\|> (?:DROP|SELECT|AGGREGATE|WHERE)\b", re.DOTALL)
DIGITS = re.compile(r"\d\.\d{12,}")
"""A float in a text: the last digit is the C library's."""


def find_reason(comparison: Comparison) -> str | None:
    """Why the answers may differ; None where they must not."""
    refusal = comparison.reference.refusal
    if refusal is None and "Invalid time zone" in (comparison.server.refusal or ""):
        found = ZONE.search(comparison.sql)
        return "the reference's C library has more names of time zones" if found else None
    if refusal is None:
        return find_documented(comparison) or find_library(comparison)
    if comparison.server.refusal is None and refusal.startswith("[OUT_OF_RANGE]"):
        return find_uncomputed(comparison.sql) or find_library(comparison)
    reasons = (why for words, why in REFERENCE_CANNOT.items() if re.search(words, refusal))
    return next(reasons, None)


def find_documented(comparison: Comparison) -> str | None:
    """What the documentation of Spanner says otherwise."""
    kinds = [str(kind).replace("FLOAT32", "FLOAT64") for _, kind in comparison.reference.columns]
    same = kinds == [str(kind) for _, kind in comparison.server.columns]
    if comparison.difference == "other columns" and same and ROUNDED.search(comparison.sql):
        return "a rounded FLOAT32 is a FLOAT64 by Spanner's documentation"
    return None


def find_library(comparison: Comparison) -> str | None:
    """What the reference computes otherwise, by its C library or its way to a mean."""
    if EDGE_YEARS.search(comparison.sql):
        return "the reference's C library writes the years of %c with four digits"
    if LENIENT_JSON.search(comparison.sql):
        return "the reference takes a missing item of JSON for null, and an unknown escape as it is"
    if SPECIFIERS.search(comparison.sql):
        return "the reference's C library has other specifiers than are documented"
    if cut_digits(comparison.reference.rows) == cut_digits(comparison.server.rows):
        return "the reference's C library has another last digit of a float, written as text"
    if ENDLESS_MEAN.search(comparison.sql) and "NaN" in str(comparison.reference.rows):
        return "the reference's mean of infinite values depends on their order"
    return None


def cut_digits(rows: Sequence[Sequence[object]]) -> str:
    """Rows as a text whose floats have nine digits behind the point."""
    return DIGITS.sub(lambda found: found[0][:11], str(rows))


def find_uncomputed(sql: str) -> str | None:
    """What the reference has computed, and refuses, although no result needs it."""
    if NO_ROWS.search(sql):
        return "the reference computes values of rows that LIMIT 0 leaves out"
    if DROPPED_LATER.search(sql):
        return "the reference computes columns that a later operator of a pipeline leaves out"
    if sql.startswith("WITH "):
        return "the reference computes columns of WITH for rows that no result needs"
    if EMPTY_SIDE.search(sql):
        return "the reference computes a side of INTERSECT or EXCEPT although the other is empty"
    if DROPPED.search(sql):
        return "the reference computes columns that EXCEPT leaves out"
    if FIELDS.search(sql):
        return "the reference computes fields of structs that decide nothing"
    if DECIDED.search(sql):
        return "the reference computes operands that do not decide the result"
    return None
