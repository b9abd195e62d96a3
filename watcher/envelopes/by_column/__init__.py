"""Envelopes of whole batches, by column: the same bytes as each envelope writes by change.

What columns cannot do raises ``NotByColumnError``; then the change's own envelope does it.
"""
