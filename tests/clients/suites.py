"""The suites, by the names that ``make clients SUITE=NAME`` takes."""

from __future__ import annotations

from clients import (
    beam,
    debezium,
    django,
    go_client,
    go_sql_driver,
    gorm,
    hammer,
    hibernate,
    java_client,
    jdbc,
    liquibase,
    node,
    pgadapter,
    python_client,
    spanner_cli,
    spring_data,
    sqlalchemy_dialect,
    sqlalchemy_postgresql,
    sqlalchemy_suite,
    typeorm,
    wrench,
    yo,
)
from clients.suite import Suite

ALL: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        python_client.GOOGLESQL,
        python_client.POSTGRESQL,
        go_client.GOOGLESQL,
        go_client.POSTGRESQL,
        go_sql_driver.SUITE,
        sqlalchemy_suite.SUITE,
        sqlalchemy_dialect.SUITE,
        sqlalchemy_postgresql.SUITE,
        gorm.SUITE,
        wrench.SUITE,
        hammer.SUITE,
        spanner_cli.SUITE,
        yo.SUITE,
        java_client.SUITE,
        jdbc.SUITE,
        liquibase.GOOGLESQL,
        liquibase.POSTGRESQL,
        hibernate.GOOGLE,
        hibernate.GOOGLESQL,
        hibernate.POSTGRESQL,
        spring_data.GOOGLESQL,
        spring_data.POSTGRESQL,
        beam.SUITE,
        node.SUITE,
        pgadapter.SUITE,
        typeorm.SUITE,
        django.SUITE,
        debezium.SUITE,
    )
}
SMALL = (sqlalchemy_suite.SUITE,)
"""Those that need only what ``make setup`` installs, and less than half a minute of CPU time."""
