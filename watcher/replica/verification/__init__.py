"""Compares a copy with Spanner at one exact timestamp, by hashes of ranges of keys."""
