"""``python -m benchmarks``: the short set on the embedded server; what ``make bench`` runs.

A line of JSON a benchmark. The numbers of one machine at one time: compare ratios and medians, not
single figures.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from benchmarks import backlog, server, watching
from watcher.java import ensure_java


def main() -> None:
    """Reads the command line, runs the set, prints as it goes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="rows of a backlog")
    parser.add_argument("--rate", type=float, default=1000, help="mutations a second")
    parser.add_argument("--seconds", type=float, default=20, help="how long to write")
    options = parser.parse_args()
    show("server", asdict(server.measure(5, options.rows, 8, None)))
    show("watch a backlog", asdict(watching.backlog(options.rows)))
    show("watch while writing", asdict(watching.steady(options.rate, options.seconds)))
    ensure_java()
    show("backlog through Spark into Parquet", asdict(backlog.run(options.rows, 4)))


def show(name: str, figures: dict[str, object]) -> None:
    """A result."""
    sys.stdout.write(json.dumps({"benchmark": name, **figures}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
