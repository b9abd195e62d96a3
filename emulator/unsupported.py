"""Features of Spanner that this server does not support: each is UNIMPLEMENTED and named."""

from __future__ import annotations

from emulator.errors import SpannerError, unimplemented


def unsupported_method(full_name: str) -> SpannerError:
    """An unsupported RPC, named ``/package.Service/Method``."""
    service, _, name = full_name.strip("/").rpartition("/")
    return unimplemented(f"The method {name} of {service}")


def queue_mutation() -> SpannerError:
    """Mutations that send to or acknowledge a queue."""
    return unimplemented("A mutation of a queue (send, ack)")


def parameter_type(name: str) -> SpannerError:
    """A value of a type that the server does not keep."""
    return unimplemented(f"A value of type {name}")
