"""Names the storage backend. Twisted imports every drop-in to list it, so nothing else is imported here."""

from kubetwist.server.plugins import StorageBackendFactory

journal = StorageBackendFactory("journal", "journalstore.backend:make")
