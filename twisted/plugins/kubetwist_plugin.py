from twisted.application.service import ServiceMaker

kubeapi = ServiceMaker("kubetwist", "kubetwist.tap", "The Kubernetes API server.", "kubeapi")
backup = ServiceMaker(
    "kubetwist-backup",
    "kubetwist.cli.backup",
    "Back up a Kubernetes API server's data directory.",
    "kubeapi-backup",
)
restore = ServiceMaker(
    "kubetwist-restore", "kubetwist.cli.restore", "Make a data directory of a backup.", "kubeapi-restore"
)
migrate = ServiceMaker(
    "kubetwist-migrate",
    "kubetwist.cli.migrate",
    "Move what a Kubernetes API server stores to another storage backend.",
    "kubeapi-migrate",
)
plugin = ServiceMaker(
    "kubetwist-plugin",
    "kubetwist.cli.plugin",
    "Write a package with plugins for the Kubernetes API server.",
    "kubeapi-plugin",
)
envtest = ServiceMaker(
    "kubetwist-envtest",
    "kubetwist.testing.envtest.command",
    "Write a directory with kube-apiserver and etcd for envtest.",
    "kubeapi-envtest",
)
