"""A schema, steps and options as plain values."""
