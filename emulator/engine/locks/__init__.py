"""Locks of read-write transactions, and the writes that they keep until their commit.

The protocol is in docs/emulator-locks.md.
"""
