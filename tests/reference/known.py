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


def find_reason(comparison: Comparison) -> str | None:
    """Why the answers may differ; None where they must not."""
    refusal = comparison.reference.refusal
    if refusal is None:
        return None
    if refusal.startswith("[OUT_OF_RANGE]") and NO_ROWS.search(comparison.sql):
        return "the reference computes values of rows that LIMIT 0 leaves out"
    reasons = (why for words, why in REFERENCE_CANNOT.items() if re.search(words, refusal))
    return next(reasons, None)
