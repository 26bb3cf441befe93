from kubetwist.admission.deferred import DeferredPluginFactory
from kubetwist.admission.factory import AdmissionPluginFactory


def _built_in(name: str, *, default: bool = True, when: str = "") -> AdmissionPluginFactory:
    place = f"kubetwist.admission_plugins.{name.lower()}:{name}"
    return AdmissionPluginFactory(name, place, default, when=when)


def _deferred(name: str, resources: str, operations: str, phases: str, *, when: str = "") -> DeferredPluginFactory:
    """Return the factory of a plugin that is imported at the first request; the arguments are passed to its class."""
    place = f"kubetwist.admission_plugins.{name.lower()}:{name}"
    return DeferredPluginFactory(
        name, place, tuple(resources.split()), tuple(operations.split()), tuple(phases.split()), when=when
    )


def _webhooks(name: str) -> AdmissionPluginFactory:
    return AdmissionPluginFactory(name, f"kubetwist.admission_plugins.webhooks.plugins:{name}")


namespace_lifecycle = _built_in("NamespaceLifecycle")
service_account = _deferred("ServiceAccount", "pods pods/ephemeralcontainers", "CREATE UPDATE", "admit validate")
taint_nodes_by_condition = _deferred("TaintNodesByCondition", "nodes", "CREATE", "admit")
priority = _built_in("Priority")
default_toleration_seconds = _deferred("DefaultTolerationSeconds", "pods", "CREATE UPDATE", "admit")
storage_object_in_use_protection = _deferred(
    "StorageObjectInUseProtection",
    "persistentvolumes persistentvolumeclaims volumeattributesclasses.storage.k8s.io",
    "CREATE",
    "admit",
)
limit_ranger = _deferred("LimitRanger", "pods pods/resize persistentvolumeclaims", "CREATE UPDATE", "admit validate")
runtime_class = _deferred("RuntimeClass", "pods", "CREATE", "admit validate")
certificate_subject_restriction = _deferred(
    "CertificateSubjectRestriction", "certificatesigningrequests.certificates.k8s.io", "CREATE", "validate"
)
resource_quota = _built_in("ResourceQuota")
pod_topology_labels = _deferred("PodTopologyLabels", "pods pods/binding", "CREATE", "admit", when=">=1.33")
default_storage_class = _deferred("DefaultStorageClass", "persistentvolumeclaims", "CREATE", "admit")
default_ingress_class = _deferred("DefaultIngressClass", "ingresses.networking.k8s.io", "CREATE", "admit")
persistent_volume_claim_resize = _deferred(
    "PersistentVolumeClaimResize", "persistentvolumeclaims", "UPDATE", "validate"
)
node_restriction = AdmissionPluginFactory(
    "NodeRestriction", "kubetwist.admission_plugins.noderestriction:NodeRestriction", default=False
)
pod_security = AdmissionPluginFactory("PodSecurity", "kubetwist.admission_plugins.podsecurity.plugin:PodSecurity")
pod_group_protection = _deferred(
    "PodGroupProtection",
    "pods podgroups.scheduling.k8s.io compositepodgroups.scheduling.k8s.io",
    "CREATE",
    "admit validate",
    when=">=1.36",
)
pod_group_workload_exists = _deferred(
    "PodGroupWorkloadExists", "podgroups.scheduling.k8s.io", "CREATE", "validate", when=">=1.36"
)
node_declared_feature_validator = _deferred(
    "NodeDeclaredFeatureValidator", "pods pods/resize", "UPDATE", "validate", when=">=1.35"
)
job_validation = _deferred("JobValidation", "jobs.batch", "UPDATE", "validate", when=">=1.36,<1.37")
pod_resize_validator = _deferred("PodResizeValidator", "pods/resize", "UPDATE", "validate", when=">=1.36")
certificate_approval = _deferred(
    "CertificateApproval", "certificatesigningrequests.certificates.k8s.io/approval", "UPDATE", "validate"
)
certificate_signing = _deferred(
    "CertificateSigning", "certificatesigningrequests.certificates.k8s.io/status", "UPDATE", "validate"
)
cluster_trust_bundle_attest = _deferred(
    "ClusterTrustBundleAttest", "clustertrustbundles.certificates.k8s.io", "CREATE UPDATE", "validate"
)

always_admit = _built_in("AlwaysAdmit", default=False)
always_deny = _built_in("AlwaysDeny", default=False)
always_pull_images = _built_in("AlwaysPullImages", default=False)
deny_service_external_ips = _built_in("DenyServiceExternalIPs", default=False)
event_rate_limit = _built_in("EventRateLimit", default=False)
extended_resource_toleration = _built_in("ExtendedResourceToleration", default=False)
image_policy_webhook = _built_in("ImagePolicyWebhook", default=False)
limit_pod_hard_anti_affinity_topology = _built_in("LimitPodHardAntiAffinityTopology", default=False)
namespace_auto_provision = _built_in("NamespaceAutoProvision", default=False)
namespace_exists = _built_in("NamespaceExists", default=False)
owner_references_permission_enforcement = _built_in("OwnerReferencesPermissionEnforcement", default=False)
pod_node_selector = _built_in("PodNodeSelector", default=False)
pod_toleration_restriction = _built_in("PodTolerationRestriction", default=False)
mutating_admission_webhook = _webhooks("MutatingAdmissionWebhook")
validating_admission_webhook = _webhooks("ValidatingAdmissionWebhook")


def _policies(name: str, *, when: str = "") -> AdmissionPluginFactory:
    return AdmissionPluginFactory(name, f"kubetwist.admission_plugins.policies.plugins:{name}", when=when)


mutating_admission_policy = _policies("MutatingAdmissionPolicy", when=">=1.32")
validating_admission_policy = _policies("ValidatingAdmissionPolicy")
