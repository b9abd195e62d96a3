"""Probes of the timestamps of reads."""

from __future__ import annotations

from watcher.overview.probe.context import Observation, ProbeContext
from watcher.overview.probe.tables import VALUE

ROUNDS = 20


def probe_strong_reads(context: ProbeContext) -> Observation:
    """Commits right after strong reads."""
    key = context.take_key()
    context.insert(key)
    least: int | None = None
    for number in range(ROUNDS):
        read_at = context.queries.fetch_read_timestamp()
        committed = context.update(key, f"round {number}")
        if committed <= read_at:
            return Observation(
                False,
                f"a transaction that began after a strong read at {read_at} committed at"
                f" {committed}",
            )
        least = committed - read_at if least is None else min(least, committed - read_at)
    return Observation(True, f"{ROUNDS} commits, each at least {least} us after the read before it")


def probe_exact_reads(context: ProbeContext) -> Observation:
    """Reads a row at the timestamps of its versions, after it has changed again."""
    key = context.take_key()
    versions = [(context.insert(key, "version 0"), "version 0")]
    for number in range(1, 4):
        value = f"version {number}"
        versions.append((context.update(key, value), value))
    for at, value in (*versions, *versions):
        row = context.read((VALUE,), key, at)
        if row != [value]:
            return Observation(False, f"a read at {at} shows {row}, not the version of then")
    before = context.read((VALUE,), key, versions[0][0] - 1)
    if before is not None:
        return Observation(False, "a read before the row was inserted shows it")
    return Observation(
        True, f"{len(versions)} versions, each read twice after the last was written"
    )
