"""How long status and plan take for a large schema: ``python -m benchmarks.ddl_scale``."""

from __future__ import annotations

import argparse
import json
import sys
import time

from ddl.migration.plan import make_plan
from ddl.rules.evolve import parse_schema
from ddl.tracking.status import list_statuses
from spanner_schema.model.options import WatchOptions
from spanner_schema.model.selection import select_tables


def main() -> None:
    """Reads the command line, prints JSON: seconds for each part."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ddl_scale", description=__doc__)
    parser.add_argument("--tables", type=int, default=5_000)
    parser.add_argument("--columns", type=int, default=20)
    options = parser.parse_args()
    columns = ", ".join(f"Column{n} STRING(MAX)" for n in range(options.columns - 1))
    script = ";\n".join(
        f"CREATE TABLE Table{n} (Id INT64, {columns}) PRIMARY KEY (Id)"
        for n in range(options.tables)
    )
    took: dict[str, float] = {}
    began = time.perf_counter()
    schema = parse_schema(script)
    took["parse"] = time.perf_counter() - began
    names = select_tables(schema, ["*"])
    began = time.perf_counter()
    statuses = list_statuses(schema, names)
    took["status"] = time.perf_counter() - began
    began = time.perf_counter()
    plan = make_plan(schema, names, WatchOptions())
    took["plan"] = time.perf_counter() - began
    figures = {name: round(seconds, 2) for name, seconds in took.items()}
    counts = {"tables": len(statuses), "statements": len(plan.statements)}
    sys.stdout.write(json.dumps(counts | figures) + "\n")


if __name__ == "__main__":
    main()
