"""Connections: transports, TLS, and limits of connections and memory."""
