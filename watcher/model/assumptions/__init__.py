"""The ledger: every behaviour of Spanner that we rely on.

Code that relies on an entry says so in a comment of its own line, ``# assumes: NAME``.
"""
