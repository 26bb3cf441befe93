"""Structured merge: the ownership of fields, and the rules of server-side apply."""
