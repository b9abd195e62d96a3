"""Compaction of copies between windows: the policy that settings ask for, and runs as they are
counted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from watcher.replica.copies import CompactedCopy
from watcher.replica.upkeep import Compacted
from watcher.replica.writing.compaction import CompactionPolicy, CompactionSwitch
from watcher.runners.metrics import Metrics


class CompactionSettings(Protocol):
    """What settings say of it: ``[replica]`` of a file, or the arguments of ``replicate``."""

    @property
    def compaction(self) -> CompactionSwitch:
        """Whether copies are compacted here."""
        ...

    @property
    def compaction_deleted_percent(self) -> float:
        """As ``CompactionPolicy.deleted_percent``."""
        ...

    @property
    def compaction_small_files(self) -> int:
        """As ``CompactionPolicy.small_files``."""
        ...

    @property
    def compaction_megabytes(self) -> float:
        """As ``CompactionPolicy.megabytes``."""
        ...


def make_policy(settings: CompactionSettings) -> CompactionPolicy | None:
    """How copies are compacted; None: not here. Raises ConfigurationError."""
    if settings.compaction == "off":
        return None
    return CompactionPolicy(
        settings.compaction_deleted_percent,
        settings.compaction_small_files,
        settings.compaction_megabytes,
    )


def run_compaction(
    metrics: Metrics, once: bool, table: str, copy: CompactedCopy, key: Sequence[str]
) -> Compacted:
    """A run, or, where the process ends after the window (``once``), all that there are to do."""
    version: int | None = None
    while True:
        began = time.monotonic()
        run = copy.compact(key, whole=once)
        ended = "abandoned" if run.abandoned else "committed" if run.replaced else None
        metrics.count_compaction(table, run.written, time.monotonic() - began, ended)
        metrics.measure_copy(table, run.files, run.deleted)
        version = version if run.version is None else run.version
        if not run.replaced or not run.more or not once:
            return Compacted(version, run.more)
