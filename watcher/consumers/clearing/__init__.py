"""Clearing: what every consumer has delivered leaves the index."""

from __future__ import annotations

from watcher.consumers.clearing.bounds import Fence
from watcher.consumers.clearing.explanation import Cost, Explanation
from watcher.consumers.clearing.methods import Method
from watcher.consumers.clearing.one_table import MARGIN_SECONDS, Cleared, Clearing
from watcher.consumers.clearing.statements import clearing_statement

__all__ = [
    "MARGIN_SECONDS",
    "Cleared",
    "Clearing",
    "Cost",
    "Explanation",
    "Fence",
    "Method",
    "clearing_statement",
]
