"""``--set key=value``: what is set, what is refused, and with which words."""

from __future__ import annotations

import pytest

from benchmarks.overrides import change_settings, flat, settings_of
from benchmarks.run_settings import RunPlan
from benchmarks.scenarios import SCENARIOS, backlog, find_scenario, published, sustained
from watcher.model.errors import ConfigurationError


def test_a_setting_is_found_by_its_last_name_and_the_others_stay() -> None:
    settings = settings_of(sustained.SustainedSettings, ["transactions=7", "shards=3"])
    assert (settings.workload.transactions, settings.preparation.shards) == (7, 3)
    assert settings.workload.profile == "steps"


def test_a_setting_is_found_by_its_whole_name() -> None:
    assert settings_of(RunPlan, ["workload.keys=zipf"]).workload.keys == "zipf"


def test_a_list_has_commas() -> None:
    assert settings_of(backlog.BacklogSettings, ["sizes=10,20"]).sizes == (10, 20)


def test_later_settings_replace_earlier_ones() -> None:
    assert settings_of(backlog.BacklogSettings, ["sizes=10,20", "sizes=5"]).sizes == (5,)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("shard=3", "unknown option 'shard'; did you mean 'shards'"),
        ("shards", "use --set key=value"),
        ("shards=many", "preparation.shards"),
        ("keys=normal", "'uniform', 'zipf' or 'sequential'"),
        ("profile=ramp", "the profile ramp needs until"),
        ("warm_up=10", "set warm_up below seconds"),
        ("capture=binlog", "'poll', 'change-stream' or 'push'"),
    ],
)
def test_a_wrong_setting_is_refused(assignment: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        settings_of(RunPlan, [assignment])


def test_a_change_stream_has_no_index_to_clear() -> None:
    with pytest.raises(ConfigurationError, match="no index to clear"):
        settings_of(RunPlan, ["capture=push", "clear_every=5"])


def test_a_load_of_the_published_ones_must_be_one() -> None:
    with pytest.raises(ConfigurationError, match="TRANSACTIONSxMUTATIONS"):
        settings_of(published.PublishedSettings, ["loads=25"])


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_the_short_settings_of_every_scenario_are_settings_of_it(name: str) -> None:
    each = find_scenario(name)
    settings = change_settings(each.settings(), each.short or ())
    assert flat(settings)


def test_an_unknown_scenario_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match="did you mean 'backlog'"):
        find_scenario("backlogs")
