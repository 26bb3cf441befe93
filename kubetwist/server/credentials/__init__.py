"""Certificates, keys, tokens and kubeconfigs of the server."""
