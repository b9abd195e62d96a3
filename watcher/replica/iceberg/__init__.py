"""Copies as Iceberg tables, written by this process."""
