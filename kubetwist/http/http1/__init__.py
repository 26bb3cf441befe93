"""HTTP/1.1 on a connection: heads, bodies, and the order of requests."""
