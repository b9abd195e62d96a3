"""Judges of what a system delivered, against what really happened."""
