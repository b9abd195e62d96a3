"""The streams of a NATS server: what is at the end of one, and messages behind that.

The client is asynchronous: it has a thread with an event loop of its own.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from watcher.process.extras import require_extras
from watcher.settings.destinations import NatsDestination, NatsOptions

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.js import JetStreamContext

Answer = TypeVar("Answer")
MESSAGE_ID = "Nats-Msg-Id"
EXPECTED_SEQUENCE = "Nats-Expected-Last-Sequence"
EXPECTED_STREAM = "Nats-Expected-Stream"
READ_AT_ONCE = 1_000
PLAIN = "the server does not speak TLS"
ENDED = "the connection ended"
CONNECT_PAUSE_SECONDS = 0.1
"""Between two attempts to reach a server."""


@cache
def load_nats() -> ModuleType:
    """The client, which only this sink needs. Raises MissingExtraError."""
    require_extras("nats")
    return import_module("nats")


class UsedContext(ssl.SSLContext):
    """One that knows whether a connection was encrypted with it: the client encrypts where the
    server asks for it, and goes on where it does not."""

    used = False

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        """As ``SSLContext.wrap_bio``."""
        self.used = True
        return super().wrap_bio(*arguments, **options)


class LostConnectionError(Exception):
    """The connection ended, or the server forbade what was asked."""


@dataclass(frozen=True, slots=True)
class Posted:
    """A message for a subject; an empty payload is none."""

    subject: str
    headers: Mapping[str, str]
    payload: bytes


@dataclass(frozen=True, slots=True)
class LastMessage:
    """The last message of a stream: its number, and its headers; None where it was removed. The
    stream may be empty, too."""

    sequence: int
    headers: Mapping[str, str] | None
    empty: bool


class NatsStreams:
    """Calls of one connection, which is made when it is needed and nothing of which is repeated:
    what was stored may have lost its answer. They raise errors of the client, TimeoutError, OSError
    and LostConnectionError."""

    def __init__(self, destination: NatsDestination, options: NatsOptions) -> None:
        """Connects to nobody yet."""
        self._library = load_nats()
        self._destination = destination
        self._options = options
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="nats")
        self._thread.start()
        self._client: Client | None = None
        self._lost: asyncio.Future[None] | None = None
        """Ends with an error when the connection is of no use any more."""

    # Calls.

    def connect(self) -> int:
        """The greatest size of a message."""
        return self._call(self._read_limit())

    def find_stream(self, subject: str) -> str:
        """The name of the stream that has a subject."""
        return self._call(self._find_stream(subject))

    def read_last(self, stream: str) -> LastMessage:
        """What a stream ends with."""
        return self._call(self._read_last(stream))

    def read_ids(self, stream: str, after: int, last: int) -> set[str]:
        """The ids of the messages behind a number, up to another one."""
        return self._call(self._read_ids(stream, after, last)) if last > after else set()

    def post(self, messages: Sequence[Posted]) -> None:
        """Returns when all are stored; none is sent again."""
        self._call(self._post(messages))

    def close(self) -> None:
        """Ends the connection, and the thread with it."""
        try:
            self._call(self._disconnect())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(self._options.timeout)

    def drop(self) -> None:
        """The next call makes a new connection."""
        self._call(self._disconnect())

    # In the loop.

    def _call(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _read_limit(self) -> int:
        return int((await self._connect()).max_payload)

    async def _find_stream(self, subject: str) -> str:
        return await (await self._open_streams()).find_stream_name_by_subject(subject)

    async def _read_last(self, stream: str) -> LastMessage:
        streams = await self._open_streams()
        state = (await streams.stream_info(stream)).state
        if not state.messages:
            return LastMessage(state.last_seq, None, True)
        try:
            message = await streams.get_msg(stream, seq=state.last_seq)
        except self._library.js.errors.NotFoundError:
            return LastMessage(state.last_seq, None, False)
        return LastMessage(state.last_seq, message.headers or {}, False)

    async def _read_ids(self, stream: str, after: int, last: int) -> set[str]:
        streams, api = await self._open_streams(), self._library.js.api
        config = api.ConsumerConfig(
            deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=after + 1,
            ack_policy=api.AckPolicy.NONE,
            headers_only=True,
        )
        reader = await streams.pull_subscribe(">", stream=stream, config=config)
        ids: set[str] = set()
        try:
            reached = after
            while reached < last:
                for message in await reader.fetch(READ_AT_ONCE, timeout=self._options.timeout):
                    reached = message.metadata.sequence.stream
                    ids.add((message.headers or {}).get(MESSAGE_ID, ""))
        finally:
            await reader.unsubscribe()
        return ids

    async def _post(self, messages: Sequence[Posted]) -> None:
        streams, patience = await self._open_streams(), self._options.timeout
        answers = [
            await streams.publish_async(
                each.subject, each.payload, wait_stall=patience, headers=dict(each.headers)
            )
            for each in messages
        ]
        stored = asyncio.gather(*answers, return_exceptions=True)
        assert self._lost is not None, "there is a connection"
        await asyncio.wait(
            (stored, self._lost), timeout=patience, return_when=asyncio.FIRST_COMPLETED
        )
        if not stored.done():
            for each in answers:
                each.cancel()
            self._raise_lost()
            raise TimeoutError(f"no answer within {patience:g} s")
        for answer in stored.result():
            if isinstance(answer, BaseException):
                raise answer

    def _raise_lost(self) -> None:
        if self._lost is not None and self._lost.done():
            self._lost.result()

    # The connection.

    async def _open_streams(self) -> JetStreamContext:
        client = await self._connect()
        streams: JetStreamContext = client.jetstream(timeout=self._options.timeout)
        return streams

    async def _connect(self) -> Client:
        if self._client is not None and self._client.is_connected:
            self._raise_lost()
            return self._client
        await self._disconnect()
        # What a server says against a message comes here: the client's future of it never ends.
        answers = self._library.js.errors.APIError
        refused: list[Exception] = []
        lost: asyncio.Future[None] = self._loop.create_future()

        async def note(error: Exception | None = None) -> None:
            if self._lost is not lost:  # it is not connected yet: there may be other servers
                refused.extend([] if error is None else [error])
            elif not lost.done():
                told = error if isinstance(error, answers) else None
                lost.set_exception(told or LostConnectionError(str(error or ENDED)))
                lost.exception()  # whether somebody waits for it or not

        try:
            self._client = await self._open(note)
        except self._library.errors.NoServersError as error:
            raise LostConnectionError(str((refused or [error])[-1])) from error
        self._lost = lost
        return self._client

    async def _open(self, note: Callable[..., Awaitable[None]]) -> Client:
        options, tls = self._options, self._make_tls()
        client: Client = await self._library.connect(
            servers=[f"nats://{each}" for each in self._destination.servers],
            user=self._destination.user,
            password=None if options.password is None else partial(self._reveal, tls),
            user_credentials=options.credentials,
            tls=tls,
            name="spanner-watcher",
            allow_reconnect=False,
            max_reconnect_attempts=1,
            reconnect_time_wait=CONNECT_PAUSE_SECONDS,
            connect_timeout=options.timeout,
            error_cb=note,
            disconnected_cb=note,
        )
        if tls is not None and not tls.used:
            await client.close()
            raise LostConnectionError(PLAIN)
        return client

    def _make_tls(self) -> UsedContext | None:
        if not self._options.tls:
            return None
        context = UsedContext(ssl.PROTOCOL_TLS_CLIENT)
        if self._options.ca_certificate is None:
            context.load_default_certs()
        else:
            context.load_verify_locations(self._options.ca_certificate)
        return context

    def _reveal(self, tls: UsedContext | None) -> str:
        """The password, once the connection is what it has to be."""
        if tls is not None and not tls.used:
            raise LostConnectionError(PLAIN)
        assert self._options.password is not None, "it is asked for where there is one"
        return str(self._options.password.reveal())

    async def _disconnect(self) -> None:
        client, self._client, self._lost = self._client, None, None
        if client is not None and not client.is_closed:
            await client.close()
