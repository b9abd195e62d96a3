"""The model of large instances: its answers hang together."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from benchmarks.cli import app
from benchmarks.model import Assumptions, Setup, find_capacity, find_fewest_shards, forecast

SETUPS = st.builds(
    Setup,
    nodes=st.integers(1, 300),
    writes=st.floats(1, 1_000_000),
    shards=st.integers(1, 2_000),
    interval=st.floats(0.1, 60),
)


@given(SETUPS)
def test_the_rate_that_is_carried_keeps_every_server_cool(setup: Setup) -> None:
    rate, _ = find_capacity(setup, Assumptions())
    at_it = forecast(Setup(setup.nodes, rate, setup.shards, setup.interval), Assumptions())
    assert at_it.tail_busy <= Assumptions().busy * 1.0001
    if rate:
        assert at_it.total_busy <= Assumptions().busy * 1.0001


@given(SETUPS)
def test_more_nodes_never_carry_less(setup: Setup) -> None:
    more = Setup(setup.nodes * 2, setup.writes, setup.shards, setup.interval)
    assert find_capacity(more, Assumptions())[0] >= find_capacity(setup, Assumptions())[0] * 0.9999


@given(st.integers(1, 200), st.floats(100, 300_000))
def test_the_fewest_shards_are_enough_and_one_less_is_not(nodes: int, writes: float) -> None:
    least = find_fewest_shards(nodes, writes, 1.0, Assumptions())
    if least is None:
        return
    assert find_capacity(Setup(nodes, writes, least), Assumptions())[0] >= writes
    if least > 1:
        assert find_capacity(Setup(nodes, writes, least - 1), Assumptions())[0] < writes


def test_one_shard_is_a_hot_spot_that_never_cools() -> None:
    hot_spot = forecast(Setup(nodes=100, writes=100_000, shards=1), Assumptions())
    assert hot_spot.limit == "tails"
    assert hot_spot.warm_up_seconds == float("inf")
    assert not hot_spot.enough


def test_the_command_answers_and_exits_with_1_when_nothing_will_do() -> None:
    invoked = CliRunner().invoke(app, ["model", "--nodes", "200", "--writes", "200000", "--json"])
    assert invoked.exit_code == 0, invoked.output
    answer = json.loads(invoked.output)
    assert answer["fewest_shards"] == find_fewest_shards(200, 200_000, 1.0, Assumptions())
    too_few = CliRunner().invoke(app, ["model", "--nodes", "2", "--writes", "200000"])
    assert too_few.exit_code == 1
    assert "no number of shards is enough; use 146 nodes" in " ".join(too_few.output.split())
