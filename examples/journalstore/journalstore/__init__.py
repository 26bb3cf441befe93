"""A storage backend for kubetwist: values in memory, changes in one append-only file."""
