"""A schema registry with Confluent's API: the ids of schemas, and what it says against one.

docs.confluent.io/platform/current/schema-registry/develop/api.html has the calls and their codes.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from watcher.envelopes.record_schemas import RecordSchema
from watcher.model.errors import (
    ConfigurationError,
    DeliveryError,
    EnvelopeError,
    SinkUnavailableError,
    UnavailableError,
    WatcherError,
)
from watcher.process.extras import require_extras
from watcher.settings.destinations import KafkaOptions
from watcher.settings.secret_values import hide_values, reveal_all
from watcher.spanner.outages import Outages

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaRegistryClient

DEFAULTS: dict[str, str | int | float | bool] = {
    "timeout": 10,
    # The window is delivered again after these.
    "max.retries": 2,
    "retries.wait.ms": 100,
    "retries.max.wait.ms": 1_000,
}
"""What properties of the client are unless they are configured."""
INCOMPATIBLE, INVALID = 409, 422
READ_ONLY = 42205
"""The registry's own code for a mode in which it registers nothing: it is about no schema."""
DENIED, MISSING = (401, 403), 404
GOES_AWAY = {408, 425, 429}
"""Answers that ask to come again later, as all from 500 on."""
WRONG_ANSWER = (AttributeError, KeyError, TypeError, ValueError)
"""What the client raises over an answer that is not a registry's."""
ANSWER_CHARACTERS_MAX = 600


class SchemaRefusedError(EnvelopeError):
    """A registry does not take a schema under its subject."""


@cache
def load_client() -> ModuleType:
    """Confluent's client, which only this needs. Raises MissingExtraError."""
    require_extras("registry")
    return import_module("confluent_kafka.schema_registry")


class SchemaRegistry:
    """Finds the ids of schemas, and registers those that are new where it may."""

    def __init__(self, address: str, options: KafkaOptions) -> None:
        """Connects to nobody yet. Raises ConfigurationError for wrong properties."""
        self._module = load_client()
        self._unanswered: type[Exception] = import_module("httpx2").HTTPError
        self._address = address
        self._options = options
        self._outages = Outages(str(self))
        self._client = self._make_client()

    def __str__(self) -> str:
        return f"the schema registry {self._address}"

    def connect(self) -> None:
        """Raises UnavailableError where no registry answers, and as ``find_id``."""
        try:
            self._client.get_schema_types()
        except self._errors as error:
            words = self._explain(error)
            if isinstance(words, SinkUnavailableError):
                raise UnavailableError(
                    f"{words}: check delivery.kafka.schema_registry and its properties"
                ) from None
            raise words from None

    def find_id(self, subject: str, schema: RecordSchema) -> int:
        """The id of a schema under its subject.

        Raises SchemaRefusedError, SinkUnavailableError where the registry does not answer, and
        DeliveryError where somebody has to fix something.
        """
        try:
            found = self._ask(subject, self._module.Schema(schema.text, schema.kind))
        except self._errors as error:
            # The client's error may show what it was given: it is not the cause that is shown.
            raise self._explain(error, subject) from None
        self._outages.record_answer()
        if not isinstance(found, int):
            raise DeliveryError(f"{self} gave no id for the schema of subject '{subject}'")
        return found

    def _ask(self, subject: str, schema: Any) -> int | None:
        normalize = self._options.normalize_schemas
        if self._options.auto_register:
            return self._client.register_schema(subject, schema, normalize)
        return self._client.lookup_schema(subject, schema, normalize).schema_id

    def _make_client(self) -> SchemaRegistryClient:
        properties = self._options.schema_registry_properties
        settings = {**DEFAULTS, **reveal_all(properties), "url": self._address}
        try:
            client: SchemaRegistryClient = self._module.SchemaRegistryClient(settings)
        except (ValueError, TypeError, OSError) as error:
            reason = hide_values(str(error), properties)
            raise ConfigurationError(
                f"[delivery.kafka.schema_registry_properties]: {reason}"
            ) from None
        return client

    @property
    def _errors(self) -> tuple[type[Exception], ...]:
        """What calls of the client raise: no answer, one that says no, one of another server."""
        errors = import_module("confluent_kafka.schema_registry.error")
        return (
            errors.SchemaRegistryError,
            errors.OAuthTokenError,
            self._unanswered,
            *WRONG_ANSWER,
        )

    def _explain(self, error: Exception, subject: str = "") -> WatcherError:
        """An error in words that say what to do."""
        status = getattr(error, "http_status_code", None)
        reason = hide_values(
            str(error) or type(error).__name__, self._options.schema_registry_properties
        )[:ANSWER_CHARACTERS_MAX]
        unanswered = status is None and not isinstance(error, WRONG_ANSWER)
        if unanswered or (status is not None and (status in GOES_AWAY or status >= 500)):
            lost = SinkUnavailableError(f"{self} does not answer: {reason}")
            self._outages.record_failure(lost)
            return lost
        of = f" for subject '{subject}'" if subject else ""
        if subject and status == INCOMPATIBLE:
            rule = self._read_rule(subject)
            return SchemaRefusedError(
                f"the schema of subject '{subject}' is not compatible ({rule}) with an earlier"
                f" version ({reason}): set another compatibility of the subject, or write to"
                " another topic"
            )
        if subject and status == INVALID and getattr(error, "error_code", None) != READ_ONLY:
            return SchemaRefusedError(f"the schema of subject '{subject}' is not taken: {reason}")
        if subject and status == MISSING and not self._options.auto_register:
            return DeliveryError(
                f"{self} does not have the schema of subject '{subject}' ({reason}): register it"
                " and restart, or set delivery.kafka.auto_register = true"
            )
        if status in DENIED:
            return DeliveryError(
                f"{self} does not allow this{of} ({reason}): check"
                " delivery.kafka.schema_registry_properties, and the rights of the principal"
            )
        return DeliveryError(
            f"{self} does not do what is asked{of} ({reason}): check its mode, and"
            " delivery.kafka.schema_registry, which of Apicurio ends with /apis/ccompat/v7"
        )

    def _read_rule(self, subject: str) -> str:
        """The compatibility of a subject, or of all; 'unknown' where the registry does not say.
        NONE forbids nothing: Apicurio says so of a subject without a rule of its own."""
        for name in (subject, None):
            try:
                rule = self._client.get_compatibility(name)
            except self._errors:
                continue
            if rule != "NONE":
                return rule
        return "unknown"
