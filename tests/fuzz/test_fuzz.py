"""A small, fixed sample of random requests; ``python -m fuzz.run`` sends any number."""

from __future__ import annotations

import grpc
import pytest

from emulator.process import ServerProcess
from fuzz.channel import Server
from fuzz.judge import faults_of
from fuzz.run import fuzz

REQUESTS = 600


@pytest.mark.parametrize("seed", [1, 2])
def test_no_random_request_is_an_error_of_the_server(server: ServerProcess, seed: int) -> None:
    connection = Server(server.address)
    try:
        report = fuzz(connection, REQUESTS, seed)
    finally:
        connection.close()
    assert report.requests == REQUESTS
    assert report.codes["OK"] > REQUESTS // 10
    assert not report.faults, report.faults[:3]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (grpc.StatusCode.INTERNAL, "anything"),
        (grpc.StatusCode.UNKNOWN, "Exception calling application"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "received metadata size exceeds hard limit"),
        (grpc.StatusCode.INVALID_ARGUMENT, "KeyError: 'x'"),
        (grpc.StatusCode.INVALID_ARGUMENT, 'near "FROM": syntax error'),
        (grpc.StatusCode.NOT_FOUND, "Table not found: " + "x" * 5_000),
    ],
)
def test_the_judge_refuses_what_is_not_an_answer(code: grpc.StatusCode, message: str) -> None:
    assert list(faults_of("/google.spanner.v1.Spanner/ExecuteSql", code, message))


def test_the_judge_takes_what_spanner_would_say() -> None:
    message = "Table not found: NoSuch [at 1:15]\nSELECT 'KeyError' FROM NoSuch\n              ^"
    method = "/google.spanner.v1.Spanner/ExecuteSql"
    assert not list(faults_of(method, grpc.StatusCode.INVALID_ARGUMENT, message))
