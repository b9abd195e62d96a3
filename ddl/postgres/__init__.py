"""Spanner's PostgreSQL dialect: the same schema and steps, written otherwise."""
