from kubetwist.controllers.machinery.factory import ControllerFactory

service_accounts = ControllerFactory(
    "serviceaccount-controller",
    "kubetwist.controllers.serviceaccounts.serviceaccount:ServiceAccountController",
    needs=("serviceaccounts",),
)

account_tokens = ControllerFactory(
    "serviceaccount-token-controller",
    "kubetwist.controllers.serviceaccounts.serviceaccounttokens:TokensController",
    needs=("secrets", "serviceaccounts"),
)
token_cleaner = ControllerFactory(
    "legacy-serviceaccount-token-cleaner-controller",
    "kubetwist.controllers.serviceaccounts.legacytokencleaner:LegacyTokenCleaner",
    needs=("secrets", "serviceaccounts", "pods", "configmaps"),
)
root_ca = ControllerFactory(
    "root-ca-certificate-publisher-controller",
    "kubetwist.controllers.rootcacertpublisher:RootCAPublisher",
    needs=("configmaps",),
)
cluster_roles = ControllerFactory(
    "clusterrole-aggregation-controller",
    "kubetwist.controllers.clusterroleaggregation:ClusterRoleAggregation",
    needs=("clusterroles.rbac.authorization.k8s.io",),
)
ttl_after_finished = ControllerFactory(
    "ttl-after-finished-controller",
    "kubetwist.controllers.ttlafterfinished:TTLAfterFinished",
    needs=("jobs.batch",),
)

policy_status = ControllerFactory(
    "validatingadmissionpolicy-status-controller",
    "kubetwist.controllers.validatingadmissionpolicystatus:ValidatingAdmissionPolicyStatusController",
    needs=("validatingadmissionpolicies.admissionregistration.k8s.io",),
)
resource_quotas = ControllerFactory(
    "resourcequota-controller",
    "kubetwist.controllers.resourcequota:ResourceQuotaController",
    needs=("resourcequotas",),
)
endpoints = ControllerFactory(
    "endpoints-controller",
    "kubetwist.controllers.endpoints.endpoint:EndpointsController",
    needs=("endpoints", "services", "pods"),
)
endpoint_slices = ControllerFactory(
    "endpointslice-controller",
    "kubetwist.controllers.endpoints.endpointslice:EndpointSliceController",
    needs=("endpointslices.discovery.k8s.io", "services", "pods", "nodes"),
)
slice_mirroring = ControllerFactory(
    "endpointslice-mirroring-controller",
    "kubetwist.controllers.endpoints.endpointslicemirroring:EndpointSliceMirroringController",
    needs=("endpointslices.discovery.k8s.io", "services", "endpoints"),
)
claim_protection = ControllerFactory(
    "persistentvolumeclaim-protection-controller",
    "kubetwist.controllers.volumeprotection.pvcprotection:ClaimProtection",
    needs=("persistentvolumeclaims", "pods"),
)
volume_protection = ControllerFactory(
    "persistentvolume-protection-controller",
    "kubetwist.controllers.volumeprotection.pvprotection:VolumeProtection",
    needs=("persistentvolumes",),
)
_REQUESTS = ("certificatesigningrequests.certificates.k8s.io",)
request_signer = ControllerFactory(
    "certificatesigningrequest-signing-controller",
    "kubetwist.controllers.csr.csrsigning:CSRSigningController",
    needs=_REQUESTS,
)
request_approver = ControllerFactory(
    "certificatesigningrequest-approving-controller",
    "kubetwist.controllers.csr.csrapproving:CSRApprovingController",
    needs=_REQUESTS,
)
request_cleaner = ControllerFactory(
    "certificatesigningrequest-cleaner-controller",
    "kubetwist.controllers.csr.csrcleaner:CSRCleaner",
    needs=_REQUESTS,
)
disruption = ControllerFactory(
    "disruption-controller",
    "kubetwist.controllers.disruption:DisruptionController",
    needs=("poddisruptionbudgets.policy", "pods"),
)


def _workload(name: str, place: str, *needs: str) -> ControllerFactory:
    return ControllerFactory(
        name, f"kubetwist.controllers.workloads.{place}", default=False, groups=("workloads",), needs=(*needs, "pods")
    )


replica_sets = _workload("replicaset-controller", "replicaset:ReplicaSetController", "replicasets.apps")
replication_controllers = _workload(
    "replicationcontroller-controller",
    "replicationcontroller:ReplicationControllerController",
    "replicationcontrollers",
)

garbage_collector = ControllerFactory(
    "garbage-collector-controller",
    "kubetwist.controllers.garbagecollection.garbagecollector:GarbageCollector",
)
deployments = _workload(
    "deployment-controller", "deployment:DeploymentController", "deployments.apps", "replicasets.apps"
)

namespaces = ControllerFactory(
    "namespace-controller",
    "kubetwist.controllers.namespaces.namespace:NamespaceController",
)

# Implied by --fake-nodes. The name of the controller and of its nodes is kept: tests and stored objects have it.
fake_nodes = ControllerFactory(
    "pretend-nodes",
    "kubetwist.controllers.fakekubelet.fakenodes:FakeNodes",
    default=False,
    needs=("nodes", "leases.coordination.k8s.io", "pods"),
)
scheduler = ControllerFactory(
    "kube-scheduler", "kubetwist.controllers.workloads.scheduler:Scheduler", default=False, needs=("nodes", "pods")
)
node_lifecycle = ControllerFactory(
    "node-lifecycle-controller",
    "kubetwist.controllers.nodelifecycle.nodelifecycle:NodeLifecycleController",
    default=False,
    needs=("nodes", "leases.coordination.k8s.io", "pods"),
)
taint_eviction = ControllerFactory(
    "taint-eviction-controller",
    "kubetwist.controllers.nodelifecycle.tainteviction:TaintEvictionController",
    default=False,
    needs=("nodes", "pods"),
)
stateful_sets = _workload(
    "statefulset-controller",
    "statefulset:StatefulSetController",
    "statefulsets.apps",
    "controllerrevisions.apps",
    "persistentvolumeclaims",
)
daemon_sets = _workload(
    "daemonset-controller",
    "daemonset:DaemonSetController",
    "daemonsets.apps",
    "controllerrevisions.apps",
    "nodes",
)

jobs = _workload("job-controller", "job:JobController", "jobs.batch")
cron_jobs = _workload("cronjob-controller", "cronjob:CronJobController", "cronjobs.batch", "jobs.batch")
autoscaling = ControllerFactory(
    "horizontal-pod-autoscaler-controller",
    "kubetwist.controllers.autoscaling.horizontal:HorizontalController",
    default=False,
    groups=("workloads",),
    needs=("horizontalpodautoscalers.autoscaling", "pods"),
)
