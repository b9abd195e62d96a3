"""What is proved of the copies of a replica, beside its consumer."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from watcher.model.errors import WatcherError
from watcher.model.log_events.copies import PROOF_UNREADABLE
from watcher.overview.values import ConsumerOverview, Overview, ProofOverview
from watcher.replica.cuts.manifest import Manifest
from watcher.replica.cuts.proofs import ProofFiles, TableProof

LOG = logging.getLogger("watcher.page")
Proofs = Mapping[tuple[str, str], ProofOverview]
"""By the consumer and the table."""
ReadProofs = Callable[[], Proofs]


def no_proofs() -> Proofs:
    """Those of a database whose copies nobody has named."""
    return {}


def make_proof_reader(folder: str) -> ReadProofs:
    """Reads what is proved of the replica in a folder. A store that does not answer is logged, and
    nothing is shown."""
    files, manifest = ProofFiles(folder), Manifest(folder)

    def read() -> Proofs:
        try:
            owner = manifest.find_owner()
            proofs = files.read_all() if owner is not None else {}
        except (WatcherError, OSError) as error:
            PROOF_UNREADABLE.log(LOG, folder=folder, error=error)
            return {}
        name = owner.consumer if owner is not None else ""
        return {(name, table): describe(proof) for table, proof in proofs.items()}

    return read


def describe(proof: TableProof) -> ProofOverview:
    """What is proved of a copy, as operators see it now."""
    now = time.time_ns() // 1_000
    return ProofOverview(proof.proved_at or None, proof.measure_share(now), proof.explain(now))


def add_proofs(overview: Overview, proofs: Proofs) -> Overview:
    """With what is proved of each table's copy."""
    if not proofs:
        return overview
    consumers = tuple(add_to_consumer(each, proofs) for each in overview.consumers)
    return replace(overview, consumers=consumers)


def add_to_consumer(consumer: ConsumerOverview, proofs: Proofs) -> ConsumerOverview:
    """The same of one consumer."""
    tables = tuple(
        replace(table, proof=proofs.get((consumer.consumer, table.table)))
        for table in consumer.tables
    )
    return replace(consumer, tables=tables)
