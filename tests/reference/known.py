"""Differences that are not the server's faults, each with its reason: the one place."""

from __future__ import annotations

import re

from reference.answers import Comparison

REASONS: dict[str, str] = {}
"""By a regular expression that the statement matches."""


def find_reason(comparison: Comparison) -> str | None:
    """Why the answers may differ; None where they must not."""
    reasons = (why for words, why in REASONS.items() if re.search(words, comparison.sql))
    return next(reasons, None)
