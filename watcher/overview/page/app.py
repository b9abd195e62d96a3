"""The routes of the page."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from string import Template
from typing import TypeVar

from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from watcher.consumers.states import Command
from watcher.model.log_events.running import COMMAND_SENT_BY_PAGE
from watcher.overview.as_json import (
    describe_exact,
    describe_lags,
    describe_overview,
    describe_samples,
)
from watcher.overview.observer import ExactCounts
from watcher.overview.page.access import Access
from watcher.overview.page.answering import Answering, Handler, answer_errors, read_asset
from watcher.overview.page.feed import Feed
from watcher.overview.page.requests import (
    Request,
    RequestRefusedError,
    Response,
    make_json,
    make_text,
    read_json,
)

LOG = logging.getLogger("watcher.page")
COMMANDS_MAX = 2
"""How many commands may wait for Spanner at once: the other threads still show the page."""
ASSETS = {
    "/page.css": "text/css; charset=utf-8",
    "/elements.js": "text/javascript; charset=utf-8",
    "/figures.js": "text/javascript; charset=utf-8",
    "/page.js": "text/javascript; charset=utf-8",
    "/icon.svg": "image/svg+xml",
}
"""What the page loads: files of the package, and nothing from elsewhere."""

SendCommand = Callable[[str, Command], None]
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Operations:
    """What the page may ask for besides its overview. ``send_command`` is None where operators may
    only look."""

    count: Callable[[str], ExactCounts]
    send_command: SendCommand | None


class PageApp(Answering):
    """Answers requests from the latest overview of a feed."""

    def __init__(
        self, feed: Feed, access: Access, operations: Operations, poll_seconds: float
    ) -> None:
        self._feed = feed
        self._operations = operations
        self._poll_seconds = poll_seconds
        self._counting = threading.Lock()
        self._sending = threading.BoundedSemaphore(COMMANDS_MAX)
        handlers: Mapping[tuple[str, str], Handler] = {
            ("GET", "/"): self._show_page,
            ("GET", "/api/status"): self._show_status,
            ("GET", "/api/history"): self._show_history,
            ("GET", "/metrics"): self._show_metrics,
            ("GET", "/healthz"): lambda _: make_text("ok"),
            ("GET", "/readyz"): self._show_readiness,
            ("POST", "/api/commands"): self._send_command,
            ("POST", "/api/count"): self._count,
            **{("GET", path): self._show_asset for path in ASSETS},
        }
        super().__init__(access, handlers)

    def _show_page(self, _: Request) -> Response:
        """The page with its first data inside, so that it shows something at once."""
        template = Template(read_asset("page/assets/page.html").decode())
        text = json.dumps(self._describe(), ensure_ascii=False)
        first = text.replace("<", "\\u003c")  # the data must not end the element it is in
        body = template.substitute(first=first).encode()
        return Response(HTTPStatus.OK, body, "text/html; charset=utf-8")

    def _show_asset(self, request: Request) -> Response:
        body = read_asset(f"page/assets{request.path}")
        return Response(HTTPStatus.OK, body, ASSETS[request.path])

    def _show_status(self, _: Request) -> Response:
        return make_json(self._describe())

    def _show_history(self, request: Request) -> Response:
        """The last day of a consumer's lag, or the last counts of a table's index: what is only
        asked for when somebody opens it."""
        consumer, table = request.query.get("consumer"), request.query.get("table")
        if (consumer is None) is (table is None):
            raise RequestRefusedError(
                HTTPStatus.BAD_REQUEST, "name one of them: ?consumer=NAME or ?table=NAME"
            )
        if consumer is not None:
            return make_json({"lags": describe_lags(self._feed.lags.find(consumer))})
        overview = self._feed.latest.overview
        samples = overview.history.get(table or "", ()) if overview is not None else ()
        return make_json({"samples": describe_samples(samples)})

    def _describe(self) -> dict[str, object]:
        """The overview with what the page needs to know of itself."""
        latest = self._feed.latest
        overview = describe_overview(latest.overview) if latest.overview is not None else {}
        return overview | {
            "age_seconds": round(latest.age_seconds, 3),
            "failure": latest.failure,
            "control": self._operations.send_command is not None,
            "poll_seconds": self._poll_seconds,
        }

    def _show_metrics(self, _: Request) -> Response:
        body = generate_latest(self._feed.registry)
        return Response(HTTPStatus.OK, body, CONTENT_TYPE_LATEST)

    def _show_readiness(self, _: Request) -> Response:
        if self._feed.ready:
            return make_text("ready")
        return make_text("the database could not be read lately", HTTPStatus.SERVICE_UNAVAILABLE)

    def _send_command(self, request: Request) -> Response:
        send = self._operations.send_command
        if send is None:
            raise RequestRefusedError(
                HTTPStatus.FORBIDDEN,
                "commands are off: start the page with --control, or use 'spanner-watcher ctl'",
            )
        values = read_json(request)
        try:
            consumer, command = values["consumer"], Command(values["command"])
        except (KeyError, ValueError) as error:
            names = ", ".join(Command)
            raise RequestRefusedError(
                HTTPStatus.BAD_REQUEST, f"name a consumer and a command: {names}"
            ) from error
        if not self._sending.acquire(blocking=False):
            raise RequestRefusedError(
                HTTPStatus.TOO_MANY_REQUESTS, "other commands are being sent: try again later"
            )
        try:
            answer_errors(lambda: send(consumer, command))
        finally:
            self._sending.release()
        COMMAND_SENT_BY_PAGE.log(LOG, command=command, consumer=consumer)
        self._feed.refresh()
        return make_json({"consumer": consumer, "command": str(command)})

    def _count(self, request: Request) -> Response:
        table = read_json(request).get("table", "")
        if not self._counting.acquire(blocking=False):
            raise RequestRefusedError(
                HTTPStatus.TOO_MANY_REQUESTS, "a table is being counted: try again when it is done"
            )
        try:
            counts = answer_errors(lambda: self._operations.count(table))
        finally:
            self._counting.release()
        return make_json(describe_exact(counts))
