"""django-google-spanner: its system tests, and a part of Django's own test suite with its database
back end. Of that it leaves out what its features list: what fails on any Spanner, too."""

from __future__ import annotations

from pathlib import Path

from clients.go_modules import replace_in
from clients.judging import list_exceptions
from clients.outcomes import Outcome, read_junit
from clients.python_packages import make_environment, run_pytest, unpack
from clients.suite import INSTANCE, PROJECT, Suite, Workplace

PACKAGE, VERSION = "django-google-spanner", "5.2.0"
DJANGO, DJANGO_VERSION = "Django", "5.2.19"
REQUIREMENTS = (
    f"{PACKAGE}=={VERSION}",
    f"{DJANGO}=={DJANGO_VERSION}",
    "google-cloud-testutils==1.4.0",
    "pytest==8.4.2",
    "tblib==3.2.2",
    "unittest-xml-reporting==3.2.0",
)
IS_EMULATOR = 'os.getenv("SPANNER_EMULATOR_HOST") is not None'
APPS = (
    *("annotations", "basic", "constraints", "dates", "datetimes", "indexes"),
    *("lookup", "many_to_one", "proxy_models", "queries", "schema", "timezones", "update"),
)
"""Of the apps that ask most of a database, those whose tests do not expect keys to ascend: the back
end draws them at random."""
SETTINGS = """
DATABASES = {{
    alias: {{
        "ENGINE": "django_spanner", "PROJECT": "{project}", "INSTANCE": "{instance}", "NAME": name,
        "TEST": {{"NAME": name}},
    }}
    for alias, name in [("default", "{name}"), ("other", "{name}-other")]
}}
USE_TZ = False
SECRET_KEY = "secret"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
TEST_RUNNER = "xmlrunner.extra.djangotestrunner.XMLTestRunner"
TEST_OUTPUT_DIR = "{reports}"
TEST_OUTPUT_FILE_NAME = "report.xml"
"""
SYSTEM_SETTINGS = """
USE_TZ = True
INSTALLED_APPS = ["django_spanner", "django.contrib.contenttypes", "django.contrib.auth", "tests"]
"""


def run(place: Workplace) -> list[Outcome]:
    """Runs the system tests, then the apps of Django's suite in turn."""
    python = make_environment(place, REQUIREMENTS)
    source = unpack(place, python, PACKAGE, VERSION)
    replace_in(source / "django_spanner/__init__.py", IS_EMULATOR, "False")
    outcomes = run_system_tests(place, python, source)
    tests = unpack(place, python, DJANGO, DJANGO_VERSION) / "tests"
    for app in APPS:
        outcomes += run_app(place, python, source, tests, app)
    return outcomes


def run_system_tests(place: Workplace, python: Path, source: Path) -> list[Outcome]:
    """The outcomes of the tests of the package."""
    (source / "tests/__init__.py").touch()
    (source / "settings.py").write_text(write_settings(place, "system") + SYSTEM_SETTINGS)
    (source / "conftest.py").write_text("import django\ndjango.setup()\n")
    environment = {"PYTHONPATH": str(source), "DJANGO_SETTINGS_MODULE": "settings"}
    environment |= {"GOOGLE_CLOUD_TESTS_SPANNER_INSTANCE": INSTANCE}
    environment |= {"DJANGO_SPANNER_DB": "system"}
    return run_pytest(place, python, source, ["tests/system"], environment)


def run_app(place: Workplace, python: Path, source: Path, tests: Path, app: str) -> list[Outcome]:
    """The outcomes of one app of Django's suite."""
    (tests / "spanner_settings.py").write_text(write_settings(place, "django"))
    report = place.folder / "report.xml"
    report.unlink(missing_ok=True)
    environment = {"PYTHONPATH": str(source), "RUNNING_SPANNER_BACKEND_TESTS": "1"}
    command: list[str | Path] = [
        python,
        "runtests.py",
        app,
        "--noinput",
        "--settings=spanner_settings",
    ]
    place.call(command, tests, environment, may_fail=True)
    return read_junit(report)


def write_settings(place: Workplace, name: str) -> str:
    """Django's settings, with a database of this name."""
    return SETTINGS.format(project=PROJECT, instance=INSTANCE, reports=place.folder, name=name)


SUITE = Suite(
    "django",
    f"{PACKAGE} {VERSION}, {DJANGO} {DJANGO_VERSION}",
    run,
    list_exceptions(
        {
            "the back end sends a JSON value as a STRING, which Spanner refuses, too": (
                "tests.system.django_spanner.test_json_field.TestJsonField"
                ".test_insert_and_fetch_value",
                "queries.test_bulk_update.BulkUpdateTests.test_json_field",
                "queries.test_bulk_update.BulkUpdateTests.test_json_field_sql_null",
            ),
            "the back end writes what is no SQL of Spanner: None(data), RENAME COLUMN, a bare %": (
                "constraints.tests.CheckConstraintTests.test_validate_jsonfield_exact",
                "schema.tests.SchemaTests.test_add_generated_field_with_kt_model",
                "schema.tests.SchemaTests.test_check_constraint_exact_jsonfield",
                "schema.tests.SchemaTests.test_rename_field_with_check_to_truncated_name",
            ),
            "a query without FROM has a WHERE, which Spanner refuses, too": (
                "constraints.tests.UniqueConstraintTests"
                ".test_validate_nullable_textfield_with_isnull_true",
            ),
            "it expects RETURNING, and the back end writes THEN RETURN": (
                "queries.test_db_returning.ReturningValuesTests.test_insert_returning",
                "queries.test_db_returning.ReturningValuesTests.test_insert_returning_multiple",
            ),
        }
    ),
)
