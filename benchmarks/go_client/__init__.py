"""Google's Go client, driven by a program of ours: a client that is faster than Python's."""
