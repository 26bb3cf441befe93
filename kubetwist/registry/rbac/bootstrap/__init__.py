"""Roles and bindings that every server has: the bootstrap policy and its reconciliation."""
