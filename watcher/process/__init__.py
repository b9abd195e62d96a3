"""What any process of ours has: files, a terminal, spans, an HTTP server."""
