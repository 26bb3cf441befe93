"""
The columns of every built-in kind.

Most of their descriptions are those of fields, which come with the types of the release that is served; only what the
reference says in its own words, or still says in the words of a version that is gone, is here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from ....api.resource import JSONObject

#: Looks up the description of a field: of C{"api.core.v1.PodStatus"}, the field C{"podIP"}.
Describe = Callable[[str, str], str]


class Field(NamedTuple):
    """A field whose description a column has."""

    type: str
    name: str


class Column(NamedTuple):
    """
    A column.

    @ivar description: A text, or the field that has it.
    @ivar priority: 0 for what is always shown, 1 for what is shown only in wide output.
    """

    name: str
    description: Field | str
    type: str = "string"
    format: str = ""
    priority: int = 0

    def definition(self, describe: Describe) -> JSONObject:
        """The entry of a Table's C{columnDefinitions}."""
        text = self.description if isinstance(self.description, str) else describe(*self.description)
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": text,
            "priority": self.priority,
        }


def _wide(name: str, description: Field | str) -> Column:
    return Column(name, description, priority=1)


def _integer(name: str, description: Field | str) -> Column:
    return Column(name, description, "integer")


def _boolean(name: str, description: Field | str) -> Column:
    return Column(name, description, "boolean")


def _core(kind: str, field: str) -> Field:
    return Field(f"api.core.v1.{kind}", field)


def _apps(kind: str, field: str) -> Field:
    return Field(f"api.apps.v1.{kind}", field)


def _batch(kind: str, field: str) -> Field:
    return Field(f"api.batch.v1.{kind}", field)


def _scaler(kind: str, field: str) -> Field:
    return Field(f"api.autoscaling.v2.HorizontalPodAutoscaler{kind}", field)


def _storage(kind: str, field: str) -> Field:
    return Field(f"api.storage.v1.{kind}", field)


def _slice(field: str) -> Field:
    return Field("api.discovery.v1.EndpointSlice", field)


def _flow(kind: str, field: str) -> Field:
    return Field(f"api.flowcontrol.v1.{kind}", field)


_META: Final = "apimachinery.pkg.apis.meta.v1.ObjectMeta"
_NAME: Final = Column("Name", Field(_META, "name"), format="name")
_AGE: Final = Column("Age", Field(_META, "creationTimestamp"))
_CONTAINERS: Final = (
    _wide("Containers", "Names of each container in the template."),
    _wide("Images", "Images referenced by each container in the template."),
)

#: The columns of what has none of its own.
DEFAULT: Final = (_NAME, Column("Created At", Field(_META, "creationTimestamp"), "date"))


def _admission_policy(rules: str, description: str) -> tuple[Column, ...]:
    return (
        _NAME,
        _integer(rules, description),
        Column("ParamKind", "ParamKind specifies the kind of resources used to parameterize this policy"),
        _AGE,
    )


def _role_binding(kind: str, text: str) -> tuple[Column, ...]:
    return (
        _NAME,
        Column("Role", f"{text} If the RoleRef cannot be resolved, the Authorizer must return an error."),
        _AGE,
        _wide("Users", f"Users in the {kind}"),
        _wide("Groups", f"Groups in the {kind}"),
        _wide("ServiceAccounts", f"ServiceAccounts in the {kind}"),
    )


_EVENT: Final = (
    Column("Last Seen", _core("Event", "lastTimestamp")),
    Column("Type", _core("Event", "type")),
    Column("Reason", _core("Event", "reason")),
    Column("Object", _core("Event", "involvedObject")),
    _wide("Subobject", _core("ObjectReference", "fieldPath")),
    _wide("Source", _core("Event", "source")),
    Column("Message", _core("Event", "message")),
    _wide("First Seen", _core("Event", "firstTimestamp")),
    _wide("Count", _core("Event", "count")),
    Column("Name", Field(_META, "name"), format="name", priority=1),
)
_WEBHOOKS: Final = (
    _NAME,
    _integer("Webhooks", "Webhooks indicates the number of webhooks registered in this configuration"),
    _AGE,
)
_POLICY_BINDING: Final = (
    _NAME,
    Column("PolicyName", "PolicyName indicates the policy definition which the policy binding binded to"),
    Column("ParamRef", "ParamRef indicates the param resource which sets the configuration param"),
    _AGE,
)
_SIGNER_NAME: Final = (
    "Requested signer for the request. It is a qualified name in the form: `scope-hostname.io/name`. "
    "If empty, it will be defaulted:\n"
    " 1. If it's a kubelet client certificate, it is assigned\n"
    '    "kubernetes.io/kube-apiserver-client-kubelet".\n'
    " 2. If it's a kubelet serving certificate, it is assigned\n"
    '    "kubernetes.io/kubelet-serving".\n'
    ' 3. Otherwise, it is assigned "kubernetes.io/legacy-unknown".\n'
    "Distribution of trust for signers happens out of band. You can select on this field using `spec.signerName`."
)

#: By group and kind.
COLUMNS: Final[dict[tuple[str, str], tuple[Column, ...]]] = {
    ("", "Pod"): (
        _NAME,
        Column("Ready", "The aggregate readiness state of this pod for accepting traffic."),
        Column("Status", "The aggregate status of the containers in this pod."),
        Column(
            "Restarts",
            "The number of times the containers in this pod have been restarted and when the last container in this "
            "pod has restarted.",
        ),
        _AGE,
        _wide("IP", _core("PodStatus", "podIP")),
        _wide("Node", _core("PodSpec", "nodeName")),
        _wide("Nominated Node", _core("PodStatus", "nominatedNodeName")),
        _wide("Readiness Gates", _core("PodSpec", "readinessGates")),
    ),
    ("", "PodTemplate"): (
        _NAME,
        Column("Containers", "Names of each container in the template."),
        Column("Images", "Images referenced by each container in the template."),
        Column("Pod Labels", "The labels for the pod template."),
    ),
    ("", "ReplicationController"): (
        _NAME,
        _integer("Desired", _core("ReplicationControllerSpec", "replicas")),
        _integer("Current", _core("ReplicationControllerStatus", "replicas")),
        _integer("Ready", _core("ReplicationControllerStatus", "readyReplicas")),
        _AGE,
        *_CONTAINERS,
        _wide("Selector", _core("ReplicationControllerSpec", "selector")),
    ),
    ("", "Service"): (
        _NAME,
        Column("Type", _core("ServiceSpec", "type")),
        Column("Cluster-IP", _core("ServiceSpec", "clusterIP")),
        Column("External-IP", _core("ServiceSpec", "externalIPs")),
        Column("Port(s)", _core("ServiceSpec", "ports")),
        _AGE,
        _wide("Selector", _core("ServiceSpec", "selector")),
    ),
    ("", "Endpoints"): (_NAME, Column("Endpoints", _core("Endpoints", "subsets")), _AGE),
    ("", "Node"): (
        _NAME,
        Column("Status", "The status of the node"),
        Column("Roles", "The roles of the node"),
        _AGE,
        Column("Version", _core("NodeSystemInfo", "kubeletVersion")),
        _wide("Internal-IP", _core("NodeStatus", "addresses")),
        _wide("External-IP", _core("NodeStatus", "addresses")),
        _wide("OS-Image", _core("NodeSystemInfo", "osImage")),
        _wide("Kernel-Version", _core("NodeSystemInfo", "kernelVersion")),
        _wide("Container-Runtime", _core("NodeSystemInfo", "containerRuntimeVersion")),
    ),
    ("", "Event"): _EVENT,
    ("events.k8s.io", "Event"): _EVENT,
    ("", "Namespace"): (_NAME, Column("Status", "The status of the namespace"), _AGE),
    ("", "Secret"): (_NAME, Column("Type", _core("Secret", "type")), Column("Data", _core("Secret", "data")), _AGE),
    ("", "ServiceAccount"): (_NAME, _AGE),
    ("", "PersistentVolume"): (
        _NAME,
        Column("Capacity", _core("PersistentVolumeSpec", "capacity")),
        Column("Access Modes", _core("PersistentVolumeSpec", "accessModes")),
        Column("Reclaim Policy", _core("PersistentVolumeSpec", "persistentVolumeReclaimPolicy")),
        Column("Status", _core("PersistentVolumeStatus", "phase")),
        Column("Claim", _core("PersistentVolumeSpec", "claimRef")),
        Column("StorageClass", "StorageClass of the pv"),
        Column("VolumeAttributesClass", "VolumeAttributesClass of the pv"),
        Column("Reason", _core("PersistentVolumeStatus", "reason")),
        _AGE,
        _wide("VolumeMode", _core("PersistentVolumeSpec", "volumeMode")),
    ),
    ("", "PersistentVolumeClaim"): (
        _NAME,
        Column("Status", _core("PersistentVolumeClaimStatus", "phase")),
        Column("Volume", _core("PersistentVolumeClaimSpec", "volumeName")),
        Column("Capacity", _core("PersistentVolumeClaimStatus", "capacity")),
        Column("Access Modes", _core("PersistentVolumeClaimStatus", "accessModes")),
        Column("StorageClass", "StorageClass of the pvc"),
        Column("VolumeAttributesClass", "VolumeAttributesClass of the pvc"),
        _AGE,
        _wide("VolumeMode", _core("PersistentVolumeClaimSpec", "volumeMode")),
    ),
    ("", "ComponentStatus"): (
        _NAME,
        Column("Status", "Status of the component conditions"),
        Column("Message", "Message of the component conditions"),
        Column("Error", "Error of the component conditions"),
    ),
    ("", "ConfigMap"): (_NAME, Column("Data", _core("ConfigMap", "data")), _AGE),
    ("", "ResourceQuota"): (
        _NAME,
        Column("Request", "Request represents a minimum amount of cpu/memory that a container may consume."),
        Column(
            "Limit",
            "Limits control the maximum amount of cpu/memory that a container may use independent of contention on "
            "the node.",
        ),
        _AGE,
    ),
    ("", "Status"): (
        Column("Status", Field("apimachinery.pkg.apis.meta.v1.Status", "status")),
        Column("Reason", Field("apimachinery.pkg.apis.meta.v1.Status", "reason")),
        Column("Message", ""),
    ),
    ("policy", "PodDisruptionBudget"): (
        _NAME,
        Column("Min Available", "The minimum number of pods that must be available."),
        Column("Max Unavailable", "The maximum number of pods that may be unavailable."),
        _integer("Allowed Disruptions", "Calculated number of pods that may be disrupted at this time."),
        _AGE,
    ),
    ("apps", "ReplicaSet"): (
        _NAME,
        _integer("Desired", _apps("ReplicaSetSpec", "replicas")),
        _integer("Current", _apps("ReplicaSetStatus", "replicas")),
        _integer("Ready", _apps("ReplicaSetStatus", "readyReplicas")),
        _AGE,
        *_CONTAINERS,
        _wide("Selector", _apps("ReplicaSetSpec", "selector")),
    ),
    ("apps", "Deployment"): (
        _NAME,
        Column("Ready", "Number of the pod with ready state"),
        Column("Up-to-date", _apps("DeploymentStatus", "updatedReplicas")),
        Column("Available", _apps("DeploymentStatus", "availableReplicas")),
        _AGE,
        *_CONTAINERS,
        _wide("Selector", _apps("DeploymentSpec", "selector")),
    ),
    ("apps", "StatefulSet"): (_NAME, Column("Ready", "Number of the pod with ready state"), _AGE, *_CONTAINERS),
    ("apps", "DaemonSet"): (
        _NAME,
        _integer("Desired", _apps("DaemonSetStatus", "desiredNumberScheduled")),
        _integer("Current", _apps("DaemonSetStatus", "currentNumberScheduled")),
        _integer("Ready", _apps("DaemonSetStatus", "numberReady")),
        _integer("Up-to-date", _apps("DaemonSetStatus", "updatedNumberScheduled")),
        _integer("Available", _apps("DaemonSetStatus", "numberAvailable")),
        Column("Node Selector", _core("PodSpec", "nodeSelector")),
        _AGE,
        *_CONTAINERS,
        _wide("Selector", _apps("DaemonSetSpec", "selector")),
    ),
    ("apps", "ControllerRevision"): (
        _NAME,
        Column("Controller", "Controller of the object"),
        Column("Revision", _apps("ControllerRevision", "revision")),
        _AGE,
    ),
    ("batch", "Job"): (
        _NAME,
        Column("Status", "Status of the job."),
        Column("Completions", _batch("JobStatus", "succeeded")),
        Column("Duration", "Time required to complete the job."),
        _AGE,
        *_CONTAINERS,
        _wide("Selector", _batch("JobSpec", "selector")),
    ),
    ("batch", "CronJob"): (
        _NAME,
        Column("Schedule", _batch("CronJobSpec", "schedule")),
        Column("Timezone", _batch("CronJobSpec", "timeZone")),
        _boolean("Suspend", _batch("CronJobSpec", "suspend")),
        _integer("Active", _batch("CronJobStatus", "active")),
        Column("Last Schedule", _batch("CronJobStatus", "lastScheduleTime")),
        _AGE,
        *_CONTAINERS,
        _wide("Selector", _batch("JobSpec", "selector")),
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): (
        _NAME,
        Column("Reference", _scaler("Spec", "scaleTargetRef")),
        Column("Targets", _scaler("Spec", "metrics")),
        Column("MinPods", _scaler("Spec", "minReplicas")),
        Column("MaxPods", _scaler("Spec", "maxReplicas")),
        Column("Replicas", _scaler("Status", "currentReplicas")),
        _AGE,
    ),
    ("autoscaling", "Scale"): (
        Column("Name", Field(_META, "name")),
        _integer("Desired", Field("api.autoscaling.v1.ScaleSpec", "replicas")),
        _integer("Available", Field("api.autoscaling.v1.ScaleStatus", "replicas")),
        _AGE,
    ),
    ("networking.k8s.io", "Ingress"): (
        _NAME,
        Column("Class", "The name of the IngressClass resource that should be used for additional configuration"),
        Column("Hosts", "Hosts that incoming requests are matched against before the ingress rule"),
        Column("Address", "Address is a list containing ingress points for the load-balancer"),
        Column("Ports", "Ports of TLS configurations that open"),
        _AGE,
    ),
    ("networking.k8s.io", "IngressClass"): (
        _NAME,
        Column("Controller", "Controller that is responsible for handling this class"),
        Column("Parameters", "A reference to a resource with additional parameters"),
        _AGE,
    ),
    ("networking.k8s.io", "NetworkPolicy"): (
        _NAME,
        Column("Pod-Selector", Field("api.networking.v1.NetworkPolicySpec", "podSelector")),
        _AGE,
    ),
    ("networking.k8s.io", "ServiceCIDR"): (
        _NAME,
        Column("CIDRs", Field("api.networking.v1.ServiceCIDRSpec", "cidrs")),
        _AGE,
    ),
    ("networking.k8s.io", "IPAddress"): (
        _NAME,
        Column("ParentRef", Field("api.networking.v1.IPAddressSpec", "parentRef")),
    ),
    ("networking.k8s.io", "ClusterCIDR"): (
        _NAME,
        Column("PerNodeHostBits", Field("api.networking.v1alpha1.ClusterCIDRSpec", "perNodeHostBits")),
        Column("IPv4", Field("api.networking.v1alpha1.ClusterCIDRSpec", "ipv4")),
        Column("IPv6", Field("api.networking.v1alpha1.ClusterCIDRSpec", "ipv6")),
        _AGE,
        _wide("NodeSelector", Field("api.networking.v1alpha1.ClusterCIDRSpec", "nodeSelector")),
    ),
    ("discovery.k8s.io", "EndpointSlice"): (
        _NAME,
        Column("AddressType", _slice("addressType")),
        Column("Ports", _slice("ports")),
        Column("Endpoints", _slice("endpoints")),
        _AGE,
    ),
    ("rbac.authorization.k8s.io", "RoleBinding"): _role_binding(
        "roleBinding", "RoleRef can reference a Role in the current namespace or a ClusterRole in the global namespace."
    ),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _role_binding(
        "clusterRoleBinding", "RoleRef can only reference a ClusterRole in the global namespace."
    ),
    ("certificates.k8s.io", "CertificateSigningRequest"): (
        _NAME,
        _AGE,
        Column("SignerName", _SIGNER_NAME),
        Column("Requestor", "Base64-encoded PKCS#10 CSR data"),
        Column("RequestedDuration", Field("api.certificates.v1.CertificateSigningRequestSpec", "expirationSeconds")),
        Column("Condition", "Conditions applied to the request, such as approval or denial."),
    ),
    ("certificates.k8s.io", "ClusterTrustBundle"): (
        _NAME,
        Column("SignerName", Field("api.certificates.v1beta1.ClusterTrustBundleSpec", "signerName")),
    ),
    ("certificates.k8s.io", "PodCertificateRequest"): (
        _NAME,
        *(
            Column(name, Field("api.certificates.v1beta1.PodCertificateRequestSpec", name[0].lower() + name[1:]))
            for name in ("PodName", "ServiceAccountName", "NodeName", "SignerName")
        ),
        Column("State", "Is the request Pending, Issued, Denied, or Failed?"),
    ),
    ("coordination.k8s.io", "Lease"): (
        _NAME,
        Column("Holder", Field("api.coordination.v1.LeaseSpec", "holderIdentity")),
        _AGE,
    ),
    ("coordination.k8s.io", "LeaseCandidate"): (
        _NAME,
        Column("LeaseName", Field("api.coordination.v1alpha2.LeaseCandidateSpec", "leaseName")),
        Column("BinaryVersion", ""),
        Column("EmulationVersion", ""),
        _AGE,
    ),
    ("storage.k8s.io", "StorageClass"): (
        _NAME,
        *(
            Column(name, _storage("StorageClass", name[0].lower() + name[1:]))
            for name in ("Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion")
        ),
        _AGE,
    ),
    ("storage.k8s.io", "VolumeAttributesClass"): (
        _NAME,
        Column("DriverName", _storage("VolumeAttributesClass", "driverName")),
        _AGE,
    ),
    ("storage.k8s.io", "VolumeAttachment"): (
        _NAME,
        Column("Attacher", _storage("VolumeAttachmentSpec", "attacher"), format="name"),
        Column("PV", _storage("VolumeAttachmentSource", "persistentVolumeName")),
        Column("Node", _storage("VolumeAttachmentSpec", "nodeName")),
        _boolean("Attached", _storage("VolumeAttachmentStatus", "attached")),
        _AGE,
    ),
    ("storage.k8s.io", "CSINode"): (
        _NAME,
        _integer("Drivers", "Drivers indicates the number of CSI drivers registered on the node"),
        _AGE,
    ),
    ("storage.k8s.io", "CSIDriver"): (
        _NAME,
        _boolean("AttachRequired", _storage("CSIDriverSpec", "attachRequired")),
        _boolean("PodInfoOnMount", _storage("CSIDriverSpec", "podInfoOnMount")),
        _boolean("StorageCapacity", _storage("CSIDriverSpec", "storageCapacity")),
        Column("TokenRequests", _storage("CSIDriverSpec", "tokenRequests")),
        _boolean("RequiresRepublish", _storage("CSIDriverSpec", "requiresRepublish")),
        Column("Modes", _storage("CSIDriverSpec", "volumeLifecycleModes")),
        _AGE,
    ),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): _admission_policy(
        "Validations", "Validations indicates the number of validation rules defined in this configuration"
    ),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): _admission_policy(
        "Mutations", "Mutation indicates the number of mutations rules defined in this configuration"
    ),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): _POLICY_BINDING,
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): _POLICY_BINDING,
    ("apiregistration.k8s.io", "APIService"): (
        _NAME,
        Column("Service", "The reference to the service that hosts this API endpoint."),
        Column("Available", "Whether this service is available."),
        _AGE,
    ),
    ("scheduling.k8s.io", "PriorityClass"): (
        _NAME,
        _integer("Value", Field("api.scheduling.v1.PriorityClass", "value")),
        _boolean("Global-Default", Field("api.scheduling.v1.PriorityClass", "globalDefault")),
        _AGE,
        Column("PreemptionPolicy", Field("api.scheduling.v1.PriorityClass", "preemptionPolicy")),
    ),
    ("node.k8s.io", "RuntimeClass"): (_NAME, Column("Handler", ""), _AGE),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): (
        _NAME,
        Column("PriorityLevel", _flow("PriorityLevelConfigurationReference", "name")),
        Column("MatchingPrecedence", _flow("FlowSchemaSpec", "matchingPrecedence")),
        Column("DistinguisherMethod", _flow("FlowSchemaSpec", "distinguisherMethod")),
        _AGE,
        Column("MissingPL", "references a broken or non-existent PriorityLevelConfiguration"),
    ),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): (
        _NAME,
        Column("Type", _flow("PriorityLevelConfigurationSpec", "type")),
        Column("NominalConcurrencyShares", _flow("LimitedPriorityLevelConfiguration", "nominalConcurrencyShares")),
        Column("Queues", _flow("QueuingConfiguration", "queues")),
        Column("HandSize", _flow("QueuingConfiguration", "handSize")),
        Column("QueueLengthLimit", _flow("QueuingConfiguration", "queueLengthLimit")),
        _AGE,
    ),
    ("internal.apiserver.k8s.io", "StorageVersion"): (
        _NAME,
        Column(
            "CommonEncodingVersion",
            Field("api.apiserverinternal.v1alpha1.StorageVersionStatus", "commonEncodingVersion"),
        ),
        Column("StorageVersions", Field("api.apiserverinternal.v1alpha1.StorageVersionStatus", "storageVersions")),
        _AGE,
    ),
    ("resource.k8s.io", "DeviceClass"): (_NAME, _AGE),
    ("resource.k8s.io", "ResourceClaim"): (
        _NAME,
        Column("State", "A summary of the current state (allocated, pending, reserved, etc.)."),
        _AGE,
    ),
    ("resource.k8s.io", "ResourceClaimTemplate"): (_NAME, _AGE),
    ("resource.k8s.io", "ResourceSlice"): (
        _NAME,
        Column("Node", Field("api.resource.v1.ResourceSliceSpec", "nodeName")),
        Column("Driver", Field("api.resource.v1.ResourceSliceSpec", "driver")),
        Column("Pool", Field("api.resource.v1.ResourcePool", "name")),
        _AGE,
    ),
    ("resource.k8s.io", "DeviceTaintRule"): (
        _NAME,
        *(
            Column(name, Field("api.resource.v1alpha3.DeviceTaint", name[0].lower() + name[1:]))
            for name in ("Key", "Value", "Effect", "TimeAdded")
        ),
        _AGE,
    ),
    ("storagemigration.k8s.io", "StorageVersionMigration"): (
        Column("Name", Field(_META, "name")),
        Column("Resource", "Fully qualified resource to migrate"),
    ),
}
