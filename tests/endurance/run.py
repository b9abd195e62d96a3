"""Hours of load: ``PYTHONPATH=.:tests python -m endurance.run --minutes 90 --rate 3000``.

An application writes all the time. Two consumers poll: one is killed with -9, in turns with the
server, the other one lives from the beginning to the end. The schema changes, and clearing takes
out of the index what both have. At the end both must have delivered what was written, window by
window; memory, file descriptors and the index must not have grown; and after each kill a consumer
must be less than two seconds behind again within ``--recovery`` seconds.

``samples.jsonl`` in the folder grows while it runs; ``report.json`` is written at its end. SIGTERM
ends it early, with a report.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from conformance.embedded import restored_address
from endurance.judge import read_truth
from endurance.report import (
    Followed,
    find_growth,
    find_slow_recoveries,
    find_wrong_deliveries,
    find_wrong_table,
    summarise,
    summarise_gauges,
)
from endurance.system import KILLED, SERVER, Endurance

RETRY = "trying again in"
"""What a watcher logs when a window has failed, as when a busy machine lets a lease run out."""
DISK_EACH = 60
"""The disk of so many samples is one figure of the report."""


def run(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """A whole run; its report, which is also in the folder. ``wrong`` has what must never be,
    ``slow`` and ``growing`` what a busy machine may do."""
    with restored_address():
        endurance = Endurance(folder, options)
        try:
            endurance.start()
            endurance.run()
            table = endurance.read_table()
        finally:
            endurance.close()
    report = make_report(endurance, table)
    (folder / "report.json").write_text(json.dumps(report, indent=2))
    return report


def make_report(endurance: Endurance, table: set[tuple[int, int]]) -> dict[str, Any]:
    """Everything that was measured, and every problem."""
    options, kills = endurance.options, endurance.kills
    truth = read_truth(sorted(endurance.folder.glob("truth.*")))
    samples = endurance.sampler.samples
    consumers = [
        Followed(
            name,
            consumer.output.deliveries,
            endurance.logs[name].points,
            [kill for kill in kills if kill.what in (name, SERVER)],
            consumer.log.read_text().count(RETRY),
        )
        for name, consumer in endurance.consumers.items()
    ]
    wrong = list(find_wrong_table(truth, table))
    slow: list[str] = []
    for consumer in consumers:
        wrong += find_wrong_deliveries(truth, consumer)
        slow += find_slow_recoveries(consumer, options.recovery)
        keep(endurance.folder, consumer)
    return {
        "seed": options.seed,
        "minutes": round(endurance.minutes, 1),
        "mutations": len(truth),
        "mutations_per_second": round(len(truth) / (endurance.minutes * 60)),
        "kills": {what: [kill.what for kill in kills].count(what) for what in (KILLED, SERVER)},
        "schema_changes": [change.what for change in endurance.changes],
        "consumers": {each.name: summarise(each, options.recovery) for each in consumers},
        "thirds and most": summarise_gauges(samples),
        "disk_mb": [round(sample.disk_mb) for sample in samples[::DISK_EACH]],
        "wrong": wrong,
        "slow": slow,
        "growing": list(find_growth(samples)),
    }


def keep(folder: Path, consumer: Followed) -> None:
    """What the judges have read, to look at it again."""
    deliveries = consumer.deliveries
    windows = [(each.instance, each.start, each.end, len(each.rows)) for each in deliveries]
    np.savez(
        folder / f"{consumer.name}.npz",
        windows=np.array(windows, dtype=np.int64),
        rows=np.concatenate([each.rows for each in deliveries]),
        staleness=np.array(consumer.staleness),
    )
    kills = json.dumps([asdict(kill) for kill in consumer.kills])
    (folder / f"{consumer.name}.kills.json").write_text(kills)


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line; intervals in seconds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=90)
    parser.add_argument("--rate", type=float, default=3_000, help="mutations a second")
    parser.add_argument("--keys", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kill-every", type=float, default=120, metavar="SECONDS")
    parser.add_argument("--change-every", type=float, default=300, metavar="SECONDS")
    parser.add_argument("--recovery", type=float, default=10, metavar="SECONDS")
    parser.add_argument("--interval", default="500ms", help="between two polls")
    parser.add_argument("--clear-every", default="5s", help="between two clearings")
    parser.add_argument("--folder", type=Path, help="kept; else a temporary one")
    return parser.parse_args(arguments)


def main() -> int:
    """Runs, prints the report, and gives 1 for any problem."""
    options = parse_arguments()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        report = run(folder, options)
    print(json.dumps(report, indent=2))
    return 1 if report["wrong"] or report["slow"] or report["growing"] else 0


if __name__ == "__main__":
    sys.exit(main())
