"""Decides what the next window is: values and functions without I/O."""
