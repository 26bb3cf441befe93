"""Encryption at rest: its configuration file, the ciphers, key management services, and an encrypting store."""
