"""com.google.cloud:spring-cloud-gcp-data-spanner. Its own tests are not published: a program of
ours uses its template on entities as its samples do. It has GoogleSQL only: in the PostgreSQL
dialect Spring Data JPA works through PGAdapter, whose sample application has a test."""

from __future__ import annotations

import shutil

from clients import pgadapter
from clients.maven_packages import resolve, run_junit, run_program
from clients.outcomes import Outcome
from clients.repositories import copy_files
from clients.suite import INSTANCE, PROJECT, Suite, Workplace

PACKAGE, VERSION = "com.google.cloud:spring-cloud-gcp-data-spanner", "6.1.1"
JPA, JPA_VERSION = "org.springframework.boot:spring-boot-starter-data-jpa", "3.3.4"
JPA_PACKAGES = (
    f"{JPA}:{JPA_VERSION}",
    f"{pgadapter.PACKAGE}:{pgadapter.VERSION}",
    f"org.postgresql:postgresql:{pgadapter.DRIVER}",
    "org.liquibase:liquibase-core:4.27.0",
    "com.fasterxml.jackson.core:jackson-databind:2.17.2",
    "com.google.cloud:google-cloud-spanner-hibernate-tools:3.7.0",
    "io.hypersistence:hypersistence-utils-hibernate-63:3.8.3",
    "org.slf4j:slf4j-api:2.0.16",
    "org.testcontainers:testcontainers:1.20.2",
    "junit:junit:4.13.2",
)
SAMPLE = "samples/java/spring-data-jpa"


def run(place: Workplace) -> list[Outcome]:
    """Runs our program."""
    return run_program(place, [f"{PACKAGE}:{VERSION}"], "SpringDataSuite")


def run_postgresql(place: Workplace) -> list[Outcome]:
    """Runs the sample application of PGAdapter by its test."""
    class_path = resolve(place, JPA_PACKAGES)
    tag = f"v{pgadapter.VERSION}"
    source = copy_files(place, pgadapter.REPOSITORY, tag, SAMPLE) / SAMPLE / "src"
    shutil.copytree(source / "test/java", source / "main/java", dirs_exist_ok=True)
    java = source / "main/java"
    classes = pgadapter.compile_sources(place, class_path, java, sorted(java.rglob("*.java")))
    settings = {
        "spanner.use_emulator": "false",
        "spanner.project": PROJECT,
        "spanner.instance": INSTANCE,
        "spanner.database": "spring-data-jpa",
    }
    name = f"{pgadapter.TESTS}.sample.SampleApplicationTest"
    class_path = f"{classes}:{source / 'main/resources'}:{class_path}"
    return run_junit(place, class_path, [f"--select-class={name}"], settings)


GOOGLESQL = Suite("spring-data", f"{PACKAGE} {VERSION}", run)
POSTGRESQL = Suite("spring-data-postgresql", f"{JPA} {JPA_VERSION}", run_postgresql)
