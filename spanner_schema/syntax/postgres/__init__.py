"""Spanner's PostgreSQL dialect: the same steps and schemas, read and written its own way."""
