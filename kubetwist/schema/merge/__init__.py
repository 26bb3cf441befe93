"""Structured merge: field ownership and server-side apply; see sigs.k8s.io/structured-merge-diff."""
