"""The case files of others, run against the embedded server: ``make conformance``."""
