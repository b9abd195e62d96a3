"""Hands rows to sinks: windows, backfills and open queries, with retries."""
