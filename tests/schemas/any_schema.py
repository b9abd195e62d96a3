"""Random schemas, each watched and copied in a random way: ``make any-schema``.

Examples are drawn in rounds, each in a process of its own, a fork of this one. A round that finds a
fault shows the smallest example that has it; ``--round N --seed S`` draws the same round again. The
server is in the process, without a port: that costs less, and what is drawn is not about networks.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import sys
import traceback
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from time import perf_counter, process_time, time_ns

from fixtures.server import connect
from hypothesis import HealthCheck, Phase, given, seed, settings
from interleavings.in_process import serve_in_process

from schemas.drawings import Drawing, Judge, drawings

ROUND = 100
"""Examples a round."""
SECONDS_MAX = 3600.0
GARBAGE = 100_000
"""Objects made before a collection: what the modules hold is not looked through each time."""
FORKS = get_context("fork")


class FaultError(AssertionError):
    """An example has problems; the text is the example and they."""


@dataclass
class Round:
    """What came of a round."""

    number: int
    examples: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    fault: str = ""
    seconds: float = 0.0
    cpu_seconds: float = 0.0


def describe(drawing: Drawing, problems: Sequence[str]) -> str:
    """An example in words."""
    capture = drawing.value_capture or "poll"
    lines = [f"{drawing.schema.dialect}, {capture} to {drawing.sink}, rows from {drawing.seed}:"]
    lines += [f"    {statement};" for statement in drawing.schema.statements]
    return "\n".join([*lines, *problems])


def check(judge: Judge, drawing: Drawing) -> Counter[str]:
    """What was done with an example. Raises FaultError where something was wrong."""
    outcome = judge.judge(drawing)
    if not outcome.holds:
        problems = [f"{each.stage}: {each.text}" for each in outcome.problems[:3]]
        raise FaultError(describe(drawing, problems))
    return outcome.counts + Counter({"tables refused": len(outcome.refused)})


def run_round(number: int, base: int, examples: int, shrink: bool) -> Round:
    """Draws examples in this process."""
    done = Round(number)
    phases = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)
    start, cpu = perf_counter(), process_time()
    with serve_in_process(lambda: time_ns() // 1000) as address:
        judge = Judge(connect(address))

        @seed(base * 1_000_000 + number)
        @settings(
            max_examples=examples,
            phases=phases,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
        )
        @given(drawings)
        def draw(drawing: Drawing) -> None:
            done.examples += 1
            done.counts.update(check(judge, drawing))

        try:
            draw()
        except FaultError as error:
            done.fault = str(error)
        except Exception:  # noqa: BLE001 (a schema that the server refuses, or a fault of the tests)
            done.fault = traceback.format_exc()[-4000:]
        done.seconds, done.cpu_seconds = perf_counter() - start, process_time() - cpu
    return done


def run_child(answer: Connection, number: int, base: int, examples: int, shrink: bool) -> None:
    """A round in this process, which then ends at once: threads of clients would keep it."""
    logging.getLogger("watcher").addHandler(logging.NullHandler())
    gc.freeze()
    gc.set_threshold(GARBAGE)
    answer.send(run_round(number, base, examples, shrink))
    answer.close()
    os._exit(0)


def run_in_fork(number: int, base: int, examples: int, shrink: bool) -> Round:
    """A round in a process of its own."""
    here, there = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=run_child, args=(there, number, base, examples, shrink))
    process.start()
    there.close()
    fault = f"the round did not end within {SECONDS_MAX:g} s"
    with suppress(EOFError):
        if here.poll(SECONDS_MAX):
            done: Round = here.recv()
            process.join()
            return done
    process.kill()
    process.join()
    return Round(number, fault=f"{fault}, or its process ended: {process.exitcode}")


def main() -> int:
    """Reads the command line; the exit code: 1 where a round found a fault."""
    parser = argparse.ArgumentParser(prog="make any-schema", description=__doc__)
    parser.add_argument("--examples", type=int, default=2_000)
    parser.add_argument("--jobs", type=int, default=2, help="rounds side by side")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--round", type=int, help="this one alone")
    parser.add_argument("--no-shrink", action="store_true", help="show faults as they were drawn")
    options = parser.parse_args()
    rounds = range(-(-options.examples // ROUND))
    numbers = rounds if options.round is None else [options.round]
    print(f"seed {options.seed}, {len(numbers)} rounds of {ROUND} examples", flush=True)
    counts: Counter[str] = Counter()
    faults, start = 0, perf_counter()

    def run(number: int) -> Round:
        return run_in_fork(number, options.seed, ROUND, not options.no_shrink)

    with ThreadPoolExecutor(options.jobs) as threads:
        for done in threads.map(run, numbers):
            counts.update(done.counts)
            counts["examples"] += done.examples
            faults += bool(done.fault)
            if done.fault:
                print(f"round {done.number}: {done.fault}")
                again = f"--seed {options.seed} --round {done.number}"
                print(f"again: make any-schema ANY_SCHEMA_ARGS='{again}'", flush=True)
            else:
                each = 1000 * done.cpu_seconds / max(done.examples, 1)
                print(f"round {done.number}: right, {each:.0f} ms of CPU an example", flush=True)
    print(", ".join(f"{count:,} {name}" for name, count in counts.items()))
    print(f"seed {options.seed}: {faults} faults, {perf_counter() - start:.0f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
