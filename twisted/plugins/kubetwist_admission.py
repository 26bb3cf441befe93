from kubetwist.admission.factory import AdmissionPluginFactory


def _built_in(name: str) -> AdmissionPluginFactory:
    return AdmissionPluginFactory(name, f"kubetwist.admission_plugins.{name.lower()}:{name}")


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
pod_topology_labels = _built_in("PodTopologyLabels")
default_storage_class = _built_in("DefaultStorageClass")
default_ingress_class = _built_in("DefaultIngressClass")
persistent_volume_claim_resize = _built_in("PersistentVolumeClaimResize")
