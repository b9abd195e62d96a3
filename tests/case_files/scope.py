"""The case files, and which cases are out of scope with their reasons: the one place for both.

A case that is out of scope is not run. Everything else must have the same outcome.
"""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("CONFORMANCE_FILES", ROOT.parent / "shared" / "conformance"))
"""The case files of others; beside the project unless the environment says another place."""

SCHEMA_CHANGE_FOLDERS = {
    "schema_changes_pg": "the embedded server has no databases of the PostgreSQL dialect",
}
"""Whole folders that are out of scope."""

SCHEMA_CHANGE_WORDS = {
    r"\b(CREATE|ALTER|DROP)\s+(OR\s+REPLACE\s+)?MODEL\b": "models need a remote endpoint",
    r"\bSEARCH\s+INDEX\b": "full-text search is not served",
    r"\bTOKENLIST\b": "full-text search is not served",
}
"""Regular expressions of statements that are out of scope."""
