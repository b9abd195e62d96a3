"""The name under which Spark finds the source: a driver registers it, and imports no more of it."""

from __future__ import annotations

FORMAT = "spanner-changes"
