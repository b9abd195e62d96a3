"""Copies as Delta tables, written by this process."""
