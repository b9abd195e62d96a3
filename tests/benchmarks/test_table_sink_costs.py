"""The benchmark of tables in other databases, in a tiny size."""

from __future__ import annotations

import json

import pytest
from fixtures.table_targets import TableTarget

from benchmarks.table_sinks import main


def test_it_measures_a_sink_beside_the_naive_way(
    table_target: TableTarget, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["--to", table_target.address, "--rows", "300", "--naive-rows", "5"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["way"] for line in lines] == ["inserts", "updates", "executemany"]
    assert [line["rows"] for line in lines] == [300, 300, 5]
    assert all(line["rows per CPU second"] > 0 for line in lines)
    assert len(table_target.read("Singers")) == 300
