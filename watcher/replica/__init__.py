"""Copies of watched tables, and the cuts at which all of them equal Spanner.

The rules are in docs/replica-protocol.md.
"""
