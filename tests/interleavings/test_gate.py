"""What the gate tells the judges."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from google.cloud.spanner_v1 import CommitRequest

from interleavings import gate
from interleavings.in_process import Answer, CallError

COMMIT = SimpleNamespace(method="/google.spanner.v1.Spanner/Commit")


@pytest.mark.parametrize(
    ("code", "noted"), [(None, ["Commit"]), (grpc.StatusCode.ABORTED, [])], ids=["ok", "aborted"]
)
def test_a_commit_that_was_aborted_has_moved_nothing(
    monkeypatch: pytest.MonkeyPatch, code: grpc.StatusCode | None, noted: list[str]
) -> None:
    monkeypatch.setattr(gate, "current_unit", lambda: SimpleNamespace(killed=None, silent=True))
    seen: list[str] = []
    interceptor = gate.Gate()
    interceptor.observer = lambda method, _request, _response: seen.append(method)
    answer = Answer(None, None if code is None else CallError(code, "", ()))

    def send(*_: Any) -> Answer:
        return answer

    assert interceptor.intercept_unary_unary(send, COMMIT, CommitRequest()) is answer
    assert seen == noted
