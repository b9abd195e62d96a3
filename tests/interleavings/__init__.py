"""Searches for schedules of real components that break what docs/protocol.md promises."""
