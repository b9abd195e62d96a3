"""Copies that Spark writes and reads."""
