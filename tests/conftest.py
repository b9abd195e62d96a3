"""Fixtures stand in small plugins under tests/fixtures."""

pytest_plugins = ["fixtures.server", "fixtures.singers"]
