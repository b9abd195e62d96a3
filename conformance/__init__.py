"""A kit that judges change-capture systems: writers, faults, and judges of JSON lines."""
