from kubetwist.admission.factory import AdmissionPluginFactory


def _built_in(name: str, *, default: bool = True, when: str = "") -> AdmissionPluginFactory:
    place = f"kubetwist.admission_plugins.{name.lower()}:{name}"
    return AdmissionPluginFactory(name, place, default, when=when)


def _webhooks(name: str) -> AdmissionPluginFactory:
    return AdmissionPluginFactory(name, f"kubetwist.admission_plugins.webhooks.plugins:{name}")


namespace_lifecycle = _built_in("NamespaceLifecycle")
service_account = _built_in("ServiceAccount")
taint_nodes_by_condition = _built_in("TaintNodesByCondition")
priority = _built_in("Priority")
default_toleration_seconds = _built_in("DefaultTolerationSeconds")
storage_object_in_use_protection = _built_in("StorageObjectInUseProtection")
limit_ranger = _built_in("LimitRanger")
runtime_class = _built_in("RuntimeClass")
certificate_subject_restriction = _built_in("CertificateSubjectRestriction")
resource_quota = _built_in("ResourceQuota")
pod_topology_labels = _built_in("PodTopologyLabels", when=">=1.33")
default_storage_class = _built_in("DefaultStorageClass")
default_ingress_class = _built_in("DefaultIngressClass")
persistent_volume_claim_resize = _built_in("PersistentVolumeClaimResize")
node_restriction = AdmissionPluginFactory(
    "NodeRestriction", "kubetwist.admission_plugins.noderestriction:NodeRestriction", default=False
)
pod_security = AdmissionPluginFactory("PodSecurity", "kubetwist.admission_plugins.podsecurity.plugin:PodSecurity")
pod_group_protection = _built_in("PodGroupProtection", when=">=1.36")
pod_group_workload_exists = _built_in("PodGroupWorkloadExists", when=">=1.36")
node_declared_feature_validator = _built_in("NodeDeclaredFeatureValidator", when=">=1.35")
job_validation = _built_in("JobValidation", when=">=1.36,<1.37")
pod_resize_validator = _built_in("PodResizeValidator", when=">=1.36")
certificate_approval = _built_in("CertificateApproval")
certificate_signing = _built_in("CertificateSigning")
cluster_trust_bundle_attest = _built_in("ClusterTrustBundleAttest")

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
