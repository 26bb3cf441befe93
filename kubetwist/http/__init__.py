"""The HTTP engine: connections, the protocol on them, and the requests that filters and resources answer."""
