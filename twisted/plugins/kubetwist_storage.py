from kubetwist.server.plugins import StorageBackendFactory

sqlite = StorageBackendFactory("sqlite", "kubetwist.server.plugins:make_sqlite")
memory = StorageBackendFactory("memory", "kubetwist.server.plugins:make_memory")
