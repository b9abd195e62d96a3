"""Random expressions and queries, compared with GoogleSQL's reference implementation."""
