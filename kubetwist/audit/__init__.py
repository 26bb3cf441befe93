"""Audit logging: the policy, the events of requests, and the log and webhook backends."""
