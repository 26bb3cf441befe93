"""HTTP/2 as a client: many requests to one server over one connection."""
