"""Channels to Spanner's services, which notice within seconds that a connection is dead.

A firewall that forgets a connection, or a load balancer that is gone, sends no word: bytes go
nowhere, and none come. gRPC asks by pings whether the other end is there while calls wait for it.
google-cloud-spanner pings every two minutes, and an emulator never.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import grpc
from google.cloud import spanner

from watcher.model.errors import ConfigurationError

KEEPALIVE_SECONDS = 30.0
"""So long a connection is silent, while a call waits, before it is asked for: Google's front ends
close connections that ask more often."""
ANSWER_SECONDS_MAX = 10.0
"""So long the answer may take, and so long TCP waits for what was sent to be acknowledged."""
Options = tuple[tuple[str, int], ...]


def list_options() -> Options:
    """The options of every channel. By default gRPC waits up to two minutes before it connects to a
    server again, and sends two pings at most while no data come."""
    return (
        ("grpc.max_send_message_length", -1),
        ("grpc.max_receive_message_length", -1),
        ("grpc.initial_reconnect_backoff_ms", 200),
        ("grpc.max_reconnect_backoff_ms", 2_000),
        ("grpc.keepalive_time_ms", round(KEEPALIVE_SECONDS * 1_000)),
        ("grpc.keepalive_timeout_ms", round(ANSWER_SECONDS_MAX * 1_000)),
        # What newer gRPC waits for an answer; the option above is what TCP waits for.
        ("grpc.http2.ping_timeout_ms", round(ANSWER_SECONDS_MAX * 1_000)),
        ("grpc.http2.max_pings_without_data", 0),
    )


def open_service(
    service: Callable[..., Any], transport: Any, client: spanner.Client, credentials: Any
) -> Any:
    """The client of one of Spanner's services, over a channel of its own, where ``client`` says
    that the server is."""
    channel = open_plain_channel(client)
    if channel is not None:
        return service(client_info=client._client_info, transport=transport(channel=channel))
    return service(
        credentials=credentials,
        client_info=client._client_info,
        client_options=client._client_options,
        transport=partial(
            transport, channel=partial(open_cloud_channel, transport, load_certificates(client))
        ),
    )


def open_plain_channel(client: spanner.Client) -> grpc.Channel | None:
    """The channel to an emulator or to Spanner Omni, which know no Google credentials; None for
    Cloud Spanner."""
    emulator = client._emulator_host
    if emulator is not None:
        return grpc.insecure_channel(emulator, list_options())
    if client._instance_type != "omni":
        return None
    if client._use_plain_text:
        return grpc.insecure_channel(client._host, list_options())
    credentials = load_certificates(client) or grpc.ssl_channel_credentials()
    return grpc.secure_channel(client._host, credentials, list_options())


def load_certificates(client: spanner.Client) -> grpc.ChannelCredentials | None:
    """What TLS uses of a client; None is what the machine trusts. Raises ConfigurationError for
    files that cannot be read."""
    files = (client._ca_certificate, client._client_key, client._client_certificate)
    if not any(files):
        return None
    return grpc.ssl_channel_credentials(*(read_file(each) for each in files))


def read_file(path: str | None) -> bytes | None:
    """The content of a file, if there is one. Raises ConfigurationError."""
    try:
        return Path(path).read_bytes() if path is not None else None
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error


def open_cloud_channel(
    transport: Any,
    certificates: grpc.ChannelCredentials | None,
    host: str,
    *,
    options: Sequence[tuple[str, int]],
    **more: Any,
) -> grpc.Channel:
    """As the client's own, with our options and certificates for its."""
    if certificates is not None:
        more["ssl_credentials"] = certificates
    channel: grpc.Channel = transport.create_channel(
        host, options=[*(dict(options) | dict(list_options())).items()], **more
    )
    return channel
