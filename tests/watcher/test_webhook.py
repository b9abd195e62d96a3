"""Changes posted to a webhook, as a server receives them, and faults of that server."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections import deque
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fixtures.commands import run_command
from fixtures.queue_records import account_changes, assert_in_order, assert_tells_the_truth
from fixtures.singers import address_of, write_singers
from fixtures.watcher_threads import run_without_error
from fixtures.webhook import BREAK, WebhookServer
from fixtures.writing import SingersWriter, run_beside
from google.cloud.spanner_v1.database import Database

from watcher import Watcher
from watcher.envelopes import make_envelope
from watcher.model.errors import ConfigurationError, DeliveryError, SinkUnavailableError
from watcher.process.failpoints import VARIABLE
from watcher.settings.destination_grammar import parse_changes_destination
from watcher.settings.destinations import WebhookDestination, WebhookOptions
from watcher.sinks import webhook as module
from watcher.sinks.queues import open_queue
from watcher.sinks.refusals import RefusedChangesError
from watcher.sinks.sink_check import check_sink
from watcher.sinks.webhook import WebhookSink
from watcher.spanner.outages import Outages


def make_sink(server: WebhookServer, topic: str = "hooks", **more: Any) -> WebhookSink:
    options = WebhookOptions(**{"tls": False} | more)
    return WebhookSink(WebhookDestination(server.address, topic), make_envelope("plain"), options)


def make_watcher(database: Database, server: WebhookServer, **delivery: Any) -> Watcher:
    watcher = Watcher(
        database=str(address_of(database)),
        tables=["Singers"],
        consumer="to-webhook",
        start="earliest",
        interval="20ms",
        delivery={"to": f"webhook://{server.address}/in/{{table}}", "webhook": {"tls": False}}
        | delivery,
    )
    watcher.deliver_to(open_queue(watcher.config))
    return watcher


def deliver(sink: WebhookSink, count: int) -> None:
    for change in account_changes(count):
        sink.write_change(change)
    sink.flush()


def answer_in_turn(server: WebhookServer, *statuses: int, then: int = 200) -> None:
    left = deque(statuses)
    server.answers = lambda _: (left.popleft() if left else then, {})


def ids(server: WebhookServer) -> list[str]:
    return [json.loads(line)["id"] for line in server.lines()]


@pytest.mark.both_dialects
def test_a_server_sees_what_was_written_in_order_per_key(
    singers: Database, webhook: WebhookServer
) -> None:
    writer = SingersWriter(singers, seed=1, keys=20)
    watcher = make_watcher(singers, webhook)
    with run_beside(writer.write, 0.01) as begun, run_without_error(watcher):
        assert begun.wait(60)
        while len(writer.newest()) < 20:
            begun.wait(0.01)
    make_watcher(singers, webhook).run_once()
    assert {taken.path for taken in webhook.taken} == {"/in/Singers"}
    assert_tells_the_truth(webhook.lines(), writer)
    assert_in_order(webhook.lines())


def test_it_keeps_the_promises_of_a_sink(webhook: WebhookServer) -> None:
    check_sink(lambda: make_sink(webhook, messages_max=4), lambda: ids(webhook))


def test_requests_have_so_many_messages_in_their_order(webhook: WebhookServer) -> None:
    deliver(make_sink(webhook, messages_max=30), 100)
    assert [len(taken.lines) for taken in webhook.taken] == [30, 30, 30, 10]
    assert ids(webhook) == [f"change-{number}" for number in range(100)]
    deliver(make_sink(webhook, bytes_max=1), 3)
    assert [len(taken.lines) for taken in webhook.taken[4:]] == [1, 1, 1]


def test_a_signature_is_that_of_standard_webhooks(webhook: WebhookServer, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("whsec\n")
    sink = make_sink(
        webhook,
        secret={"file": str(tmp_path / "key")},
        headers={"Authorization": "Bearer x"},
    )
    deliver(sink, 3)
    deliver(sink, 3)
    first, again = webhook.taken
    assert first.headers["webhook-id"] == again.headers["webhook-id"]
    assert first.headers["Authorization"] == "Bearer x"
    assert first.headers["Content-Type"] == "application/x-ndjson"
    signed = f"{first.headers['webhook-id']}.{first.headers['webhook-timestamp']}.".encode()
    expected = hmac.new(b"whsec", signed + first.body, hashlib.sha256).digest()
    assert first.headers["webhook-signature"] == f"v1,{base64.b64encode(expected).decode()}"
    assert "whsec" not in repr(sink._options)


@pytest.mark.parametrize("statuses", [(503, 502), (429,), (BREAK,), (BREAK, 500, BREAK), (408,)])
def test_a_request_is_tried_again_while_the_server_is_away(
    webhook: WebhookServer, statuses: tuple[int, ...]
) -> None:
    answer_in_turn(webhook, *statuses)
    deliver(make_sink(webhook), 5)
    assert ids(webhook) == [f"change-{number}" for number in range(5)]
    assert webhook.asked == len(statuses) + 1


def test_a_server_that_stays_away_is_an_outage(
    webhook: WebhookServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "Outages", partial(Outages, limit_seconds=0.2))
    answer_in_turn(webhook, then=503)
    sink = make_sink(webhook)
    with pytest.raises(SinkUnavailableError, match="it answered 503"):
        deliver(sink, 2)
    sink.discard()
    webhook.answers = lambda _: (200, {})
    deliver(sink, 2)
    assert ids(webhook) == ["change-0", "change-1"]


def test_a_server_says_when_it_may_be_asked_again(
    webhook: WebhookServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(Outages, "pause", lambda _, seconds: pauses.append(seconds))
    left = deque([(429, {"Retry-After": "7"})])
    webhook.answers = lambda _: left.popleft() if left else (200, {})
    deliver(make_sink(webhook), 1)
    assert pauses == [7.0]
    left.append((429, {"Retry-After": "3600"}))
    with pytest.raises(SinkUnavailableError, match="it answered 429"):
        deliver(make_sink(webhook), 1)
    assert pauses == [7.0]


@pytest.mark.parametrize("status", [400, 413, 422])
def test_changes_that_are_refused_are_named_and_the_others_arrive(
    webhook: WebhookServer, status: int
) -> None:
    bad = {"change-3", "change-11"}

    def refuse(lines: list[bytes]) -> tuple[int, dict[str, str]]:
        return (status if bad & {json.loads(line)["id"] for line in lines} else 200), {}

    webhook.answers = refuse
    sink = make_sink(webhook)
    with pytest.raises(RefusedChangesError, match=f"the server answered {status}") as refused:
        deliver(sink, 20)
    assert {each.change.id for each in refused.value.refusals} == bad
    assert ids(webhook) == [f"change-{n}" for n in range(20) if f"change-{n}" not in bad]
    sink.flush()


@pytest.mark.parametrize(
    ("status", "advice"), [(404, "check the address"), (401, "rights"), (302, "elsewhere")]
)
def test_an_address_that_takes_nothing_ends_the_watcher(
    webhook: WebhookServer, status: int, advice: str
) -> None:
    answer_in_turn(webhook, then=status)
    with pytest.raises(DeliveryError, match=advice) as ended:
        deliver(make_sink(webhook), 2)
    assert not isinstance(ended.value, RefusedChangesError)


def test_a_window_comes_again_after_a_kill_before_its_position(
    singers: Database, webhook: WebhookServer, tmp_path: Path
) -> None:
    write_singers(singers, range(5), "a")
    settings = tmp_path / "watch.toml"
    settings.write_text("[delivery.webhook]\ntls = false\n")
    arguments = ["watch", "-d", str(address_of(singers)), "-t", "Singers", "--once", "--standby"]
    arguments += ["-c", str(settings), "--consumer", "killed", "--from", "earliest"]
    arguments += ["--to", f"webhook://{webhook.address}/in"]
    killed = run_command(*arguments, **{VARIABLE: "after-delivery-before-position"})
    assert killed.returncode != 0
    done = run_command(*arguments)
    assert done.returncode == 0, done.stderr
    arrived = ids(webhook)
    assert arrived[:5] == arrived[5:]
    assert len(set(arrived)) == 5


def test_a_binary_envelope_is_refused(webhook: WebhookServer) -> None:
    destination = WebhookDestination(webhook.address, "x")
    with pytest.raises(ConfigurationError, match="binary"):
        WebhookSink(destination, make_envelope("datastream-avro"), WebhookOptions())


def test_the_table_in_a_path_is_quoted() -> None:
    destination = parse_changes_destination("webhook://h:80/in/{table}?tenant=a")
    assert isinstance(destination, WebhookDestination)
    assert destination.name_topic("s.T") == "/in/s.T?tenant=a"
    assert destination.name_topic("Größe") == "/in/Gr%C3%B6%C3%9Fe?tenant=a"
    with pytest.raises(ConfigurationError, match="webhook://HOST:PORT/PATH"):
        parse_changes_destination("webhook:h")
