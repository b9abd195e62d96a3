"""Sends random requests to a server and judges its answers: ``python -m fuzz.run --requests N``."""

from __future__ import annotations

import argparse
import random
import re
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from google.longrunning.operations_pb2 import Operation
from google.longrunning.operations_pb2 import WaitOperationRequest as WaitOperation

from emulator.process import spawn
from emulator.wire import messages as m
from fuzz import calls, ledger
from fuzz.channel import INSTANCE, Server
from fuzz.judge import faults_of
from fuzz.vocabulary import ROW_COLUMNS, ROWS, SCHEMA

LEDGER_EACH = 10
KEPT_CALLS = 4
"""So many calls later a transaction is given up, so that its locks are free."""


@dataclass
class Report:
    """What came of the requests; thread-safe by the lock of the run."""

    requests: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    faults: list[tuple[str, str, Any]] = field(default_factory=list)
    slow: list[tuple[float, str, Any]] = field(default_factory=list)

    def kinds(self) -> Counter[str]:
        """The faults, without what differs from one to the next."""
        return Counter(re.sub(r"\d+|'[^']*'", "#", fault)[:160] for fault, _, _ in self.faults)


class Fuzzer:
    """One thread's requests."""

    def __init__(self, server: Server, names: dict[str, str], seed: int, report: Report) -> None:
        self._server = server
        self._choice = random.Random(seed)
        self._report = report
        sessions = [
            server.create_session(names["fuzz"]),
            server.create_session(names["fuzz"], multiplexed=True),
        ]
        self._world = calls.World(INSTANCE, names["fuzz"], sessions)
        self._scratch = names["scratch"]
        self._ledger = ledger.Ledger(server, names["ledger"], seed % 1_000)
        self._begun: list[tuple[int, str, bytes]] = []

    def run(self, requests: int) -> None:
        """Sends so many requests."""
        for number in range(requests):
            self._step(number)
            if number % LEDGER_EACH == 0:
                self._note("ledger", self._ledger.commit(self._choice))
        self._note("ledger", self._ledger.check())

    def _step(self, number: int) -> None:
        method, request = calls.random_call(self._choice, self._world)
        if method.endswith("UpdateDatabaseDdl"):
            request.database = self._scratch
        started = time.monotonic()
        code, answer = self._server.call(method, request)
        seconds = time.monotonic() - started
        self._report.requests += 1
        self._report.codes[code.name] += 1
        self._note(method, faults_of(method, code, answer), request)
        if seconds > 2:
            self._report.slow.append((seconds, method, request))
        if code is grpc.StatusCode.OK:
            self._follow(number, method, request, answer)
        self._give_up_transactions(number)

    def _follow(self, number: int, method: str, request: Any, answer: Any) -> None:
        """Remembers transactions and tokens; waits for operations; drops new databases."""
        name = method.rpartition("/")[2]
        if name == "BeginTransaction":
            self._keep(number, request.session, m.Transaction.FromString(answer).id)
        elif name in {"ExecuteSql", "Read"}:
            metadata = m.ResultSet.FromString(answer).metadata
            self._keep(number, request.session, metadata.transaction.id)
        elif name in {"ExecuteStreamingSql", "StreamingRead"}:
            for part in answer:
                message = m.PartialResultSet.FromString(part)
                self._keep(number, request.session, message.metadata.transaction.id)
                self._world.tokens.append(message.resume_token)
        elif name in {"PartitionQuery", "PartitionRead"}:
            parts = m.PartitionResponse.FromString(answer)
            self._world.tokens += [part.partition_token for part in parts.partitions]
        elif name in {"UpdateDatabaseDdl", "UpdateDatabase"}:
            wait = WaitOperation(name=Operation.FromString(answer).name)
            wait.timeout.FromSeconds(10)
            path = "/google.longrunning.Operations/WaitOperation"
            code, ended = self._server.call(path, wait)
            self._note(method, faults_of(path, code, ended), request)
        elif name == "CreateDatabase":
            self._server.drop_database(
                Operation.FromString(answer).name.partition("/operations")[0]
            )

    def _keep(self, number: int, session: str, transaction: bytes) -> None:
        if transaction:
            self._begun.append((number, session, transaction))
            self._world.transactions.append(transaction)

    def _give_up_transactions(self, number: int) -> None:
        while self._begun and self._begun[0][0] <= number - KEPT_CALLS:
            _, session, transaction = self._begun.pop(0)
            request = m.RollbackRequest(session=session, transaction_id=transaction)
            self._server.call(calls.SPANNER + "Rollback", request)

    def _note(self, method: str, faults: Any, request: Any = None) -> None:
        for fault in faults:
            self._report.faults.append((fault, method, request))


def fuzz(server: Server, requests: int, seed: int, threads: int = 1) -> Report:
    """Sends random requests; the same ones for the same seed, in each thread."""
    report = Report()
    server.create_instance()
    names = {
        "fuzz": server.create_database(f"fuzz-{seed}", *SCHEMA),
        "scratch": server.create_database(f"scratch-{seed}", *SCHEMA),
        "ledger": server.create_database(f"ledger-{seed}", *ledger.SCHEMA),
    }
    insert_rows(server, names["fuzz"])
    fuzzers = [Fuzzer(server, names, seed * 100 + n, report) for n in range(threads)]
    workers = [threading.Thread(target=f.run, args=(requests // threads,)) for f in fuzzers]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for name in names.values():
        server.drop_database(name)
    return report


def insert_rows(server: Server, database: str) -> None:
    """Rows for the statements to read, so that their expressions are worked out."""
    request = m.CommitRequest(session=server.create_session(database))
    request.single_use_transaction.read_write.SetInParent()
    write = request.mutations.add().insert
    write.table = "A"
    write.columns.extend(ROW_COLUMNS)
    for row in ROWS:
        cells = write.values.add()
        for text in row:
            cell = cells.values.add()
            if text is None:
                cell.null_value = 0
            elif text in {"true", "false"}:
                cell.bool_value = text == "true"
            elif text.startswith("float "):
                cell.number_value = float(text.removeprefix("float "))
            else:
                cell.string_value = text
    server.expect(calls.SPANNER + "Commit", request)


def main(arguments: list[str] | None = None) -> int:
    """Runs, prints what was found, and gives 1 for any fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--show", type=int, default=20, help="faults that are printed in full")
    options = parser.parse_args(arguments)
    with spawn() as process:
        server = Server(process.address)
        started = time.monotonic()
        report = fuzz(server, options.requests, options.seed, options.threads)
        seconds = time.monotonic() - started
        server.close()
        memory = peak_memory(process.pid)
        alive = process.running
    print(f"{report.requests} requests in {seconds:.0f} s: {dict(report.codes)}")
    print(f"server {'alive' if alive else 'DOWN'}, {memory} MB of memory at most")
    print(f"{len(report.faults)} faults, {len(report.slow)} requests above 2 s")
    for kind, count in report.kinds().most_common():
        print(f"{count:6} {kind}")
    for fault, method, request in report.faults[: options.show]:
        print(f"\n{method}: {fault}\n{str(request)[:1_500]}")
    for slow, method, request in sorted(report.slow, key=lambda each: -each[0])[:5]:
        print(f"\n{slow:.1f} s: {method}\n{str(request)[:600]}")
    return 1 if report.faults or not alive else 0


def peak_memory(process: int) -> int:
    """The most memory that a process has had, in MB; 0 where the system does not say."""
    status = Path(f"/proc/{process}/status")
    text = status.read_text() if status.exists() else ""
    match = re.search(r"VmHWM:\s*(\d+) kB", text)
    return int(match[1]) // 1_024 if match else 0


if __name__ == "__main__":
    sys.exit(main())
