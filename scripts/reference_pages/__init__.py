"""Writes docs/reference/ and docs/assumptions.md from the code: commands, configuration, Spark's
options, metrics, events of the log, the embedded server's functions, what we rely on.

    PYTHONPATH=scripts python -m reference_pages

``make docs`` runs it before it builds the site, and a test compares the pages with the code.
"""

from __future__ import annotations

from pathlib import Path

from reference_pages.assumptions import make_assumptions_page
from reference_pages.commands import make_commands_page
from reference_pages.functions import make_functions_page
from reference_pages.log_events import make_log_events_page
from reference_pages.metrics import make_metrics_page
from reference_pages.settings import make_configuration_page, make_ddl_page, make_spark_page

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference"


def make_pages() -> dict[str, str]:
    """The pages by their file names. Raises MissingDescriptionError for what the code does not
    explain."""
    return {
        "../assumptions.md": make_assumptions_page(),
        "commands.md": make_commands_page(),
        "configuration.md": make_configuration_page(),
        "ddl-configuration.md": make_ddl_page(),
        "log-events.md": make_log_events_page(),
        "metrics.md": make_metrics_page(),
        "spark-options.md": make_spark_page(),
        "sql-functions.md": make_functions_page(),
    }


def write_pages() -> list[str]:
    """Writes the pages that have changed; their names."""
    FOLDER.mkdir(exist_ok=True)
    changed = []
    for name, text in make_pages().items():
        path = FOLDER / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            changed.append(name)
    return changed
