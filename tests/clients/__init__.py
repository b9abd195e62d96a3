"""The own test suites of other people's clients, run against the embedded server."""
