"""Random requests through the real gRPC API: no answer may be an error of the server itself."""
