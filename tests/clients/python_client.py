"""google-cloud-spanner: its system tests, in each dialect, as on Spanner and not on an emulator."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from clients.outcomes import Outcome
from clients.python_packages import make_environment, run_pytest, unpack
from clients.suite import Suite, Workplace

PACKAGE, VERSION = "google-cloud-spanner", "3.71.0"
REQUIREMENTS = (
    f"{PACKAGE}=={VERSION}",
    # Newer ones give databases ids of more than Spanner's 30 characters.
    "google-cloud-testutils==1.4.0",
    "mock==5.2.0",
    "opentelemetry-api==1.39.0",
    "opentelemetry-sdk==1.39.0",
    "opentelemetry-instrumentation==0.60b0",
    "pytest==8.4.2",
    "pytest-asyncio==1.2.0",
    "pytest-timeout==2.4.0",
)
PLUGIN = "not_an_emulator"
DATABASES = "tests.system.test_database_api"
BACKUPS = "tests.system.test_backup_api"
IAM, QUEUES, CONFIGURATIONS, VERSION_TIMES = (
    "policies of IAM are not served: the server checks no credentials",
    "message queues (CREATE QUEUE) are not served",
    "it needs an instance of another configuration, and the server has one",
    "a backup of a version_time before the last change of the schema is not served",
)


def run(place: Workplace, dialect: str) -> list[Outcome]:
    """Runs the system tests, without those of the asynchronous client."""
    python = make_environment(place, REQUIREMENTS)
    source = unpack(place, python, PACKAGE, VERSION)
    environment = {
        "GOOGLE_CLOUD_TESTS_CREATE_SPANNER_INSTANCE": "true",
        "SPANNER_DATABASE_DIALECT": dialect,
        "PYTHONPATH": f"{source}:{Path(__file__).parent / 'plugins'}",
    }
    arguments = ["-p", PLUGIN, "--timeout=300", "tests/system", "--ignore=tests/system/_async"]
    return run_pytest(place, python, source, arguments, environment)


GOOGLESQL = Suite(
    "python",
    f"{PACKAGE} {VERSION}",
    partial(run, dialect="GOOGLE_STANDARD_SQL"),
    {
        f"{DATABASES}.test_iam_policy": IAM,
        f"{DATABASES}.test_db_batch_send_and_ack": QUEUES,
        f"{BACKUPS}.test_multi_create_cancel_update_error_restore_errors": CONFIGURATIONS,
    },
)
POSTGRESQL = Suite(
    "python-postgresql",
    f"{PACKAGE} {VERSION}",
    partial(run, dialect="POSTGRESQL"),
    {
        f"{DATABASES}.test_iam_policy": IAM,
        f"{DATABASES}.test_db_batch_send_and_ack": QUEUES,
        f"{BACKUPS}.test_backup_workflow": VERSION_TIMES,
    },
)
