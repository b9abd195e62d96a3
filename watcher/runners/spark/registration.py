"""Makes the source known to a session, and sees to it that workers run this Python."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from watcher.model.log_events.spark import WORKERS_RUN_PYTHON
from watcher.process.extras import DISTRIBUTION
from watcher.process.spark.installed_spark import PYTHON_VARIABLE, TEMPLATE, find_worker_python
from watcher.process.spark.template_start import offer_template
from watcher.process.version import read_version
from watcher.runners.spark.format_name import FORMAT
from watcher.runners.spark.worker_errors import HIDE_TRACEBACK

LOG = logging.getLogger("watcher.spark")
PYTHON_SETTINGS = ("spark.pyspark.python", "spark.executorEnv.PYSPARK_PYTHON")


def register_source(spark: SparkSession) -> None:
    """Makes the format ``spanner-changes`` known to a session, for streams and batches."""
    use_this_python(spark)
    with made_active(spark):
        spark.dataSource.register(make_entry(sys.executable, read_version()))


@contextmanager
def made_active(spark: SparkSession) -> Iterator[None]:
    """A session as the active one of this thread: Spark looks a new name up in the active session,
    and refuses what another session of the process has registered. PySpark has no public call for
    it; Spark Connect has a server that does it."""
    if not isinstance(spark, SparkSession):
        yield
        return
    jvm: Any = spark.sparkContext._jvm
    sessions = jvm.org.apache.spark.sql.classic.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def use_this_python(spark: SparkSession) -> None:
    """Makes the workers of a session on this machine use this interpreter, unless another one was
    chosen. Spark would take the first ``python3`` on PATH, which is another one where the
    environment of the job is not activated.

    The workers of a cluster have paths of their own, and Spark Connect has a server: there it is
    for the user to choose.
    """
    if not runs_here(spark):
        return
    context = spark.sparkContext
    python = find_worker_python()
    named = [os.environ.get(PYTHON_VARIABLE), *map(context.getConf().get, PYTHON_SETTINGS)]
    if {*filter(None, named)} - {python}:
        return
    if context.pythonExec != python:
        WORKERS_RUN_PYTHON.log(LOG, python=sys.executable)
        context.pythonExec = python
    if python != sys.executable and TEMPLATE not in {*os.environ, *context.environment}:
        template = offer_template(context.environment)
        if template is not None:
            context.environment[TEMPLATE] = template


def runs_here(spark: SparkSession) -> bool:
    """Whether the workers of a session run on this machine."""
    return isinstance(spark, SparkSession) and (spark.sparkContext.master or "").startswith("local")


def make_entry(driver_python: str, driver_version: str) -> type[DataSource]:
    """The class that workers get: it looks for the product there, and gives the source of the same
    version.

    Pickled by value, because it is no attribute of a module: so it can say what is wrong where a
    worker has not installed the product.
    """
    source_module, version_module, errors_module = (
        "watcher.runners.spark.source",
        "watcher.process.version",
        "watcher.runners.spark.worker_errors",
    )
    distribution, format_name, hide_traceback = DISTRIBUTION, FORMAT, HIDE_TRACEBACK

    def load(name: str) -> ModuleType:
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            missing = (error.name or name).partition(".")[0]
            os.environ[hide_traceback] = "1"  # the process ends with the error
            raise RuntimeError(
                f"Spark's workers run {sys.executable}, which has no module '{missing}': before the"
                f" session is made, set PYSPARK_PYTHON to a Python with {distribution}[spark]; the"
                f" driver runs {driver_python}"
            ) from error

    class SpannerChangesEntry(DataSource):
        """Gives ``SpannerChanges``, in whose place it is registered."""

        @classmethod
        def name(cls) -> str:
            return format_name

        def __new__(cls, options: Mapping[str, str]) -> DataSource:  # type: ignore[misc]  # the source itself
            installed = load(version_module)
            with load(errors_module).hidden_traceback():
                installed.check_version(driver_version)
            source: DataSource = load(source_module).SpannerChanges(options)
            return source

    return SpannerChangesEntry
