"""Envelopes around another one: they change its messages, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from watcher.envelopes.message import Envelope, Headers, Known, Message


@dataclass(frozen=True, slots=True)
class WrappedEnvelope:
    """An ``Envelope`` but for ``encode``, which each of them has."""

    inside: Envelope

    @property
    def has_key(self) -> bool:
        """As ``Envelope.has_key``."""
        return self.inside.has_key

    @property
    def binary(self) -> bool:
        """As ``Envelope.binary``."""
        return self.inside.binary

    @property
    def names_table(self) -> bool:
        """As ``Envelope.names_table``."""
        return self.inside.names_table

    @property
    def headers(self) -> Headers:
        """As ``Envelope.headers``."""
        return self.inside.headers

    @property
    def needs_order(self) -> bool:
        """As ``Envelope.needs_order``."""
        return self.inside.needs_order

    def check(self, known: Known) -> None:
        """As ``Envelope.check``."""
        self.inside.check(known)

    def encode_resolved(self, micros: int) -> tuple[Message, ...]:
        """As ``Envelope.encode_resolved``."""
        return self.inside.encode_resolved(micros)
