from kubetwist.server.plugins import StorageBackendFactory

sqlite = StorageBackendFactory("sqlite", "kubetwist.server.plugins:make_sqlite")
memory = StorageBackendFactory("memory", "kubetwist.server.plugins:make_memory")
etcd = StorageBackendFactory("etcd3", "kubetwist.server.etcdbackend:make_etcd")
