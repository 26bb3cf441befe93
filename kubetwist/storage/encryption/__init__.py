"""Encryption at rest: what a file says about it, the ciphers, keys that somebody else keeps, and a store of it all."""
