"""Reads a Spanner schema and generates the migration that makes its tables watchable."""
