"""Protobuf: the wire format, and the messages of the built-in types."""
