"""
Order in which Go encodes the fields of the structs of the API.

The order equals the order of declarations. Messages that contain an object show it. Usually it is the order of field
numbers in protobuf. The table below has the exceptions, in the format of C{fieldnumbers.txt}. Source: the C{types.go}
files of k8s.io/api, apimachinery and apiextensions-apiserver.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Final

from ..api.jsontypes import JSONObject, JSONValue
from .nodes import (
    ListNode,
    MapNode,
    StructNode,
    TypeNode,
)
from .protobuf.fieldnumbers import (
    field_numbers,
    lines_by_type,
)

_KIND: Final = ("kind", "apiVersion")


def go_ordered(value: JSONValue, node: TypeNode | None) -> JSONValue:
    """
    Return a value with its keys in the order of Go's encoder.

    @param node: The type of the value; L{None} if it has none.
    """
    if isinstance(value, dict):
        return {name: go_ordered(value[name], child_type(node, name)) for name in go_keys(value, node)}
    if isinstance(value, list):
        return [go_ordered(item, child_type(node, "")) for item in value]
    return value


def go_keys(value: JSONObject, node: TypeNode | None) -> Iterable[str]:
    """Return the keys of an object in Go's order; without a type they remain unsorted."""
    if isinstance(node, StructNode):
        field_order = _order(node.name)
        return [*(name for name in field_order if name in value), *sorted(value.keys() - field_order.keys())]
    return sorted(value) if isinstance(node, MapNode) else value


def child_type(node: TypeNode | None, name: str) -> TypeNode | None:
    """Return the type of a field, of the values of a map, or of the items of a list."""
    if isinstance(node, StructNode):
        field = node.fields.get(name)
        return None if field is None else field.node
    return node.item if isinstance(node, (ListNode, MapNode)) else None


@cache
def _order(definition: str) -> dict[str, None]:
    package, _, type_name = definition.rpartition(".")
    group, version = package.split(".")[-2:]
    exception = _exceptions().get(f"{group}.{type_name}")
    names = exception.split() if exception is not None else _by_number(group, version, type_name)
    # Objects begin with kind and apiVersion; in other structs these are ordinary fields.
    return dict.fromkeys((*(name for name in _KIND if name not in names), *names))


def _by_number(group: str, version: str, type_name: str) -> list[str]:
    names: list[str] = []
    try:
        numbers = field_numbers(group, version, type_name)
    except KeyError:
        return names
    for name in numbers:
        names += _by_number(group, version, name[1:]) if name.startswith("*") else [name]
    return names


@cache
def _exceptions() -> dict[str, str]:
    return lines_by_type(_TABLE)


_TABLE: Final = """\
[admissionregistration]
MutatingWebhook name clientConfig rules failurePolicy matchPolicy namespaceSelector objectSelector sideEffects
 timeoutSeconds admissionReviewVersions reinvocationPolicy matchConditions
ValidatingWebhook name clientConfig rules failurePolicy matchPolicy namespaceSelector objectSelector sideEffects
 timeoutSeconds admissionReviewVersions matchConditions
WebhookClientConfig url service caBundle
[apiextensions]
CustomResourceDefinitionVersion name served storage deprecated deprecationWarning schema subresources
 additionalPrinterColumns selectableFields
WebhookClientConfig url service caBundle
[apps]
DeploymentCondition type status lastUpdateTime lastTransitionTime reason message
DeploymentStatus observedGeneration replicas updatedReplicas readyReplicas availableReplicas unavailableReplicas
 terminatingReplicas conditions collisionCount
ReplicaSetSpec replicas minReadySeconds selector template
ReplicaSetStatus replicas fullyLabeledReplicas readyReplicas availableReplicas terminatingReplicas observedGeneration
 conditions
[authentication]
TokenRequestSpec audiences expirationSeconds boundObjectRef
TokenReviewStatus authenticated user audiences error
[authorization]
SubjectAccessReviewStatus allowed denied reason evaluationError
[autoscaling]
HPAScalingRules stabilizationWindowSeconds selectPolicy policies tolerance
MetricSpec type object pods resource containerResource external
MetricStatus type object pods resource containerResource external
[batch]
CronJobSpec schedule timeZone startingDeadlineSeconds concurrencyPolicy suspend jobTemplate successfulJobsHistoryLimit
 failedJobsHistoryLimit
JobSpec parallelism completions activeDeadlineSeconds podFailurePolicy successPolicy backoffLimit backoffLimitPerIndex
 maxFailedIndexes selector manualSelector template ttlSecondsAfterFinished completionMode suspend podReplacementPolicy
 managedBy
JobStatus conditions startTime completionTime active succeeded failed terminating completedIndexes failedIndexes
 uncountedTerminatedPods ready
[certificates]
CertificateSigningRequestCondition type status reason message lastUpdateTime lastTransitionTime
CertificateSigningRequestSpec request signerName expirationSeconds usages username uid groups extra
PodCertificateRequestSpec signerName podName podUID serviceAccountName serviceAccountUID nodeName nodeUID
 maxExpirationSeconds pkixPublicKey proofOfPossession stubPKCS10Request unverifiedUserAnnotations
[core]
ClusterTrustBundleProjection name signerName labelSelector optional path
ConfigMap metadata immutable data binaryData
Container name image command args workingDir ports envFrom env resources resizePolicy restartPolicy restartPolicyRules
 volumeMounts volumeDevices livenessProbe readinessProbe startupProbe lifecycle terminationMessagePath
 terminationMessagePolicy imagePullPolicy securityContext stdin stdinOnce tty
EndpointAddress ip hostname nodeName targetRef
EphemeralContainer name image command args workingDir ports envFrom env resources resizePolicy restartPolicy
 restartPolicyRules volumeMounts volumeDevices livenessProbe readinessProbe startupProbe lifecycle
 terminationMessagePath terminationMessagePolicy imagePullPolicy securityContext stdin stdinOnce tty
 targetContainerName
EphemeralContainerCommon name image command args workingDir ports envFrom env resources resizePolicy restartPolicy
 restartPolicyRules volumeMounts volumeDevices livenessProbe readinessProbe startupProbe lifecycle
 terminationMessagePath terminationMessagePolicy imagePullPolicy securityContext stdin stdinOnce tty
ISCSIPersistentVolumeSource targetPortal iqn lun iscsiInterface fsType readOnly portals chapAuthDiscovery
 chapAuthSession secretRef initiatorName
ISCSIVolumeSource targetPortal iqn lun iscsiInterface fsType readOnly portals chapAuthDiscovery chapAuthSession
 secretRef initiatorName
NodeSpec podCIDR podCIDRs providerID unschedulable taints configSource externalID
PersistentVolumeClaimSpec accessModes selector resources volumeName storageClassName volumeMode dataSource
 dataSourceRef volumeAttributesClassName
PodCondition type observedGeneration status lastProbeTime lastTransitionTime reason message
PodSecurityContext seLinuxOptions windowsOptions runAsUser runAsGroup runAsNonRoot supplementalGroups
 supplementalGroupsPolicy fsGroup sysctls fsGroupChangePolicy seccompProfile appArmorProfile seLinuxChangePolicy
PodSpec volumes initContainers containers ephemeralContainers restartPolicy terminationGracePeriodSeconds
 activeDeadlineSeconds dnsPolicy nodeSelector serviceAccountName serviceAccount automountServiceAccountToken nodeName
 hostNetwork hostPID hostIPC shareProcessNamespace securityContext imagePullSecrets hostname subdomain affinity
 schedulerName tolerations hostAliases priorityClassName priority dnsConfig readinessGates runtimeClassName
 enableServiceLinks preemptionPolicy overhead topologySpreadConstraints setHostnameAsFQDN os hostUsers schedulingGates
 resourceClaims resources hostnameOverride schedulingGroup
PodStatus observedGeneration phase conditions message reason nominatedNodeName hostIP hostIPs podIP podIPs startTime
 initContainerStatuses containerStatuses qosClass ephemeralContainerStatuses resize resourceClaimStatuses
 extendedResourceClaimStatus allocatedResources resources nodeAllocatableResourceClaimStatuses
ReplicationControllerSpec replicas minReadySeconds selector template
ReplicationControllerStatus replicas fullyLabeledReplicas readyReplicas availableReplicas observedGeneration
 conditions
Secret metadata immutable data stringData type
SecurityContext capabilities privileged seLinuxOptions windowsOptions runAsUser runAsGroup runAsNonRoot
 readOnlyRootFilesystem allowPrivilegeEscalation procMount seccompProfile appArmorProfile
ServicePort name protocol appProtocol port targetPort nodePort
ServiceSpec ports selector clusterIP clusterIPs type externalIPs sessionAffinity loadBalancerIP
 loadBalancerSourceRanges externalName externalTrafficPolicy healthCheckNodePort publishNotReadyAddresses
 sessionAffinityConfig ipFamilies ipFamilyPolicy allocateLoadBalancerNodePorts loadBalancerClass internalTrafficPolicy
 trafficDistribution
Volume name hostPath emptyDir gcePersistentDisk awsElasticBlockStore gitRepo secret nfs iscsi glusterfs
 persistentVolumeClaim rbd flexVolume cinder cephfs flocker downwardAPI fc azureFile configMap vsphereVolume quobyte
 azureDisk photonPersistentDisk projected portworxVolume scaleIO storageos csi ephemeral image
VolumeMount name readOnly recursiveReadOnly mountPath subPath mountPropagation subPathExpr
VolumeSource hostPath emptyDir gcePersistentDisk awsElasticBlockStore gitRepo secret nfs iscsi glusterfs
 persistentVolumeClaim rbd flexVolume cinder cephfs flocker downwardAPI fc azureFile configMap vsphereVolume quobyte
 azureDisk photonPersistentDisk projected portworxVolume scaleIO storageos csi ephemeral image
[discovery]
EndpointSlice metadata addressType endpoints ports
[meta]
OwnerReference apiVersion kind name uid controller blockOwnerDeletion
StatusDetails name group kind uid causes retryAfterSeconds
[networking]
HTTPIngressPath path pathType backend
IngressBackend service resource
IngressSpec ingressClassName defaultBackend tls rules
[resource]
AllocatedDeviceStatus driver pool device shareID conditions data networkData
PoolStatus driver poolName generation resourceSliceCount totalDevices allocatedDevices availableDevices
 unavailableDevices nodeName validationError
ResourcePoolStatusRequestStatus poolCount pools conditions
"""
