"""Fixtures stand in small plugins under tests/fixtures."""

from hypothesis import settings

pytest_plugins = [
    "fixtures.collecting",
    "fixtures.spark_formats",
    "fixtures.skips",
    "fixtures.durations",
    "fixtures.pace",
    "fixtures.distribution",
    "fixtures.warm_python",
    "fixtures.server",
    "fixtures.certificates",
    "fixtures.placements",
    "fixtures.postgres_databases",
    "fixtures.singers",
    "fixtures.queries",
    "fixtures.everything",
    "fixtures.spark",
    "fixtures.consumers",
    "fixtures.sent_requests",
    "fixtures.reading_role",
    "fixtures.kafka",
    "fixtures.kafka_broker",
    "fixtures.pubsub",
    "fixtures.webhook",
    "fixtures.table_targets",
    "fixtures.nats_server",
    "fixtures.redis_server",
    "fixtures.schema_registry",
    "fixtures.apicurio",
    "fixtures.small_disk",
    "fixtures.object_stores",
    "fixtures.iceberg_catalogs",
    "fixtures.copy_histories",
    "fixtures.copy_views",
    "fixtures.duckdb_reader",
    "fixtures.own_formats",
    "fixtures.shifted_clock",
    "fixtures.browser",
    "fixtures.site",
]

# Timing is never a verdict here: machines are noisy, and speed belongs in benchmarks/.
settings.register_profile("project", deadline=None, print_blob=True)
settings.load_profile("project")
