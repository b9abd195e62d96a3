"""A plugin of pytest for the system tests of google-cloud-spanner: they skip on an emulator what
Google's lacks, and are told that this is none.

The client itself looks for SPANNER_EMULATOR_HOST, and takes no credentials with it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from tests.system import _helpers

_helpers.USE_EMULATOR = False
if _helpers.DATABASE_DIALECT != "POSTGRESQL":
    _helpers.DDL_STATEMENTS = _helpers._fixtures.DDL_STATEMENTS


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
    """The configurations of instances are those of an emulator: Spanner's have a region."""
    _helpers.USE_EMULATOR = fixturedef.argname == "instance_configs"
    try:
        return (yield)
    finally:
        _helpers.USE_EMULATOR = False
