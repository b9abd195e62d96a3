"""Turns a Cloud Spanner database into a stream of row changes."""
