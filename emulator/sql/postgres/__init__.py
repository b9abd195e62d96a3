"""Spanner's PostgreSQL dialect: its text as the trees that the compiler knows, its types, its
operators and functions."""
