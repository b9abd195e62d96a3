"""Hibernate 6 with Google's dialect, and Hibernate 7 with dialects of its own. Their tests are not
published: a program of ours has entities as the samples do, and lets Hibernate generate their
schema."""

from __future__ import annotations

from functools import partial

from clients.jdbc import PACKAGE as JDBC
from clients.jdbc import VERSION as JDBC_VERSION
from clients.maven_packages import run_program
from clients.outcomes import Outcome
from clients.suite import Suite, Workplace

HIBERNATE = "org.hibernate.orm:hibernate-core"
GOOGLES, GOOGLES_VERSION = "com.google.cloud:google-cloud-spanner-hibernate-dialect", "3.9.6"
OWN_VERSION = "7.4.15.Final"
PROGRAM = "HibernateSuite"


def run_googles(place: Workplace) -> list[Outcome]:
    """Runs our program with Google's dialect, which knows interleaved tables, too."""
    packages = (
        f"{GOOGLES}:{GOOGLES_VERSION}",
        f"{HIBERNATE}:6.6.31.Final",
        f"{JDBC}:{JDBC_VERSION}",
    )
    names = (PROGRAM, "HibernateInterleaving")
    class_name = "com.google.cloud.spanner.hibernate.SpannerDialect"
    return run_program(place, packages, *names, hibernate=class_name)


def run_own(dialect: str, class_name: str, place: Workplace) -> list[Outcome]:
    """Runs our program with a dialect of Hibernate's, in a database of Spanner's ``dialect``."""
    packages = (f"{HIBERNATE}:{OWN_VERSION}", f"{JDBC}:{JDBC_VERSION}")
    names = (PROGRAM, "HibernateOwnDialects")
    class_name = f"org.hibernate.dialect.{class_name}"
    return run_program(place, packages, *names, dialect=dialect, hibernate=class_name)


GOOGLE = Suite("hibernate", f"{GOOGLES} {GOOGLES_VERSION}", run_googles)
GOOGLESQL = Suite(
    "hibernate-7",
    f"{HIBERNATE} {OWN_VERSION}",
    partial(run_own, "GOOGLE_STANDARD_SQL", "SpannerDialect"),
)
POSTGRESQL = Suite(
    "hibernate-7-postgresql",
    f"{HIBERNATE} {OWN_VERSION}, PostgreSQL dialect",
    partial(run_own, "POSTGRESQL", "SpannerPostgreSQLDialect"),
)
