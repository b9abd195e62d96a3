"""A timestamp at which Spanner serves a strong read now."""

from __future__ import annotations

from watcher.spanner.queries import QueryClient


def read_now(queries: QueryClient) -> int:
    """The timestamp of a strong read, in microseconds since 1970; needs no table."""
    return queries.stream.fetch_read_timestamp()
