"""Clearing: what every consumer has delivered leaves the index."""

from __future__ import annotations

from watcher.clearing.bounds import Fence
from watcher.clearing.clearing import MARGIN_SECONDS, Cleared, Clearing
from watcher.clearing.explanation import Cost, Explanation
from watcher.clearing.methods import Method
from watcher.clearing.statements import statement

__all__ = [
    "MARGIN_SECONDS",
    "Cleared",
    "Clearing",
    "Cost",
    "Explanation",
    "Fence",
    "Method",
    "statement",
]
