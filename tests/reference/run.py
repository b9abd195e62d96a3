"""Compares random statements with GoogleSQL's reference implementation: ``make reference``."""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from fixtures.server import connect
from google.cloud.spanner_v1.database import Database

from emulator.process import spawn
from reference import tables
from reference.answers import Comparison, ask_server
from reference.expressions import KINDS, make_expression
from reference.judge import Reference, is_installed
from reference.known import find_reason
from reference.queries import Query, make_query
from reference.texts import make_texts

DEPTH = 3


@dataclass(frozen=True, slots=True)
class Sides:
    """What answers: the server, whose database has the tables, and the reference."""

    database: Database
    reference: Reference

    def compare(self, query: Query) -> Comparison:
        """Both answers to a query."""
        sql = query.text()
        answer = self.reference.ask(query.text(tables.with_clause(sql)))
        return Comparison(sql, answer, ask_server(self.database, sql), query.is_ordered)


def make_expressions(seed: int, count: int) -> Iterator[Query]:
    """Queries of one expression: over a table's rows, or constant."""
    for number in range(count):
        choice = random.Random(f"{seed}/expression/{number}")
        kind = choice.choice([*KINDS])
        if choice.random() < 0.5:
            yield Query(f"SELECT {make_expression(choice, kind, DEPTH, columns=False)} AS x")
        else:
            row = choice.randint(1, 6)
            yield Query(
                f"SELECT {make_expression(choice, kind, DEPTH)} AS x FROM A WHERE K = {row}"
            )


def make_queries(seed: int, count: int) -> Iterator[Query]:
    """Queries."""
    for number in range(count):
        yield make_query(random.Random(f"{seed}/query/{number}"))


class Tally:
    """What came of the statements of a part."""

    def __init__(self, part: str) -> None:
        self.part = part
        self.counts: Counter[str] = Counter()
        self.differences: list[Comparison] = []

    def add(self, comparison: Comparison) -> None:
        """Counts a comparison."""
        reason = find_reason(comparison) if comparison.difference else None
        if comparison.difference is None:
            self.counts["refused by both" if comparison.is_refused else "the same"] += 1
        elif reason is not None:
            self.counts[f"out of scope: {reason}"] += 1
        else:
            self.counts[comparison.difference] += 1
            self.differences.append(comparison)

    def format(self) -> str:
        """The table of this part."""
        left_out = sum(n for what, n in self.counts.items() if what.startswith("out of scope"))
        total = self.counts.total() - left_out
        agreed = total - len(self.differences)
        share = 100 * agreed / total if total else 100.0
        lines = [f"{self.part}: {agreed} of {total} agree ({share:.2f} %)"]
        lines += [f"  {count:>6}  {what}" for what, count in self.counts.most_common()]
        return "\n".join(lines)


def run(sides: Sides, part: str, queries: Iterator[Query], shown: bool) -> Tally:
    """Compares the queries; ``shown`` prints differences as they are found."""
    tally = Tally(part)
    for query in queries:
        before = len(tally.differences)
        tally.add(sides.compare(query))
        for each in tally.differences[before:] if shown else ():
            print(f"{each.difference}: {each.sql}")
            print(f"    reference: {each.reference.describe()}")
            print(f"    here:      {each.server.describe()}", flush=True)
    return tally


def main() -> int:
    """Prints the tables; 1 where less than 99.5 % agree."""
    parser = argparse.ArgumentParser(prog="make reference", description=__doc__)
    parser.add_argument("--expressions", type=int, default=1_000, metavar="N")
    parser.add_argument("--queries", type=int, default=250, metavar="N")
    parser.add_argument("--texts", type=int, default=500, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--list", action="store_true", help="print every difference")
    options = parser.parse_args()
    if not is_installed():
        print("the reference is not installed: pip install 'zetasql>=0.1.5,<0.2'", file=sys.stderr)
        return 2
    with spawn() as server, Reference() as reference:
        database = connect(server.address).database("reference", ddl_statements=tables.schema())
        database.create().result(60)
        tables.fill(database)
        sides = Sides(database, reference)
        parts = (
            ("expressions", make_expressions(options.seed, options.expressions)),
            ("queries", make_queries(options.seed, options.queries)),
            ("texts", make_texts(options.seed, options.texts)),
        )
        tallies = [run(sides, part, queries, options.list) for part, queries in parts]
    for tally in tallies:
        print(tally.format())
    faults = sum(len(tally.differences) for tally in tallies)
    total = sum(tally.counts.total() for tally in tallies)
    return 1 if faults > total * 0.005 else 0


if __name__ == "__main__":
    sys.exit(main())
