"""Runs test suites of other people's clients: ``make clients SUITE="go python"``.

Needs the package registries that the suites come from, Go for those of Go, and minutes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from fixtures.server import connect_other

from clients import suites
from clients.judging import Judgement, format_table, judge
from clients.suite import INSTANCE, Suite, Workplace
from emulator.process import spawn

FOLDER = Path(__file__).resolve().parents[2] / "build" / "clients"


def run_suite(suite: Suite, folder: Path) -> Judgement:
    """Runs a suite on a server of its own, and judges it."""
    folder.mkdir(parents=True, exist_ok=True)
    with spawn(port=suite.port) as server:
        connect_other(server.address, INSTANCE)
        place = Workplace(folder, server.address)
        place.log.unlink(missing_ok=True)
        try:
            outcomes = suite.run(place)
        except (subprocess.SubprocessError, OSError) as error:
            problem = f"cannot be run ({place.log} has the rest): {error}"
            return Judgement(suite.name, 0, 0, 0, (problem,))
    (folder / "outcomes.json").write_text(json.dumps([asdict(each) for each in outcomes], indent=1))
    return judge(suite.name, outcomes, suite.exceptions)


def main(arguments: list[str] | None = None) -> int:
    """Runs the suites that are named; 1 where one of them has a problem."""
    parser = argparse.ArgumentParser(prog="make clients", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(suites.ALL)}")
    parser.add_argument("--json", action="store_true", help="print JSON, not a table")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.suites if name not in suites.ALL]
    if unknown:
        known = ", ".join(suites.ALL)
        parser.error(f"there is no suite '{unknown[0]}'; the suites are {known}")
    judgements = []
    for name in options.suites or suites.ALL:
        judgements.append(run_suite(suites.ALL[name], FOLDER / name))
        if not options.json:
            print(format_table(judgements[-1:]), flush=True)
    if options.json:
        print(json.dumps([asdict(each) for each in judgements], indent=1))
    return 1 if any(each.problems for each in judgements) else 0


if __name__ == "__main__":
    sys.exit(main())
