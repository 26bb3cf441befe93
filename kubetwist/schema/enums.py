"""
The values that the API's enumerated types have, as OpenAPI 3 documents tell them.

They are facts of k8s.io/api and apiextensions-apiserver, release 1.36: of the types that are marked there as
enumerations, what their constants are. Nothing is decoded by them: what a field may hold is the matter of validation.

A line C{[group]} begins the types of an API group, each with its values after it, parted by C{|}; one with a version in
front is about that version only, and without values no enumeration. A line that begins with a blank continues the one
before.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from .fieldnumbers import lines_by_type


def enum_values(definition: str, go_type: str) -> list[str] | None:
    """
    The values of a field; L{None} if it may hold others.

    @param definition: The type that it is a field of: a name without a group is one of the same, or of the core group.
    @param go_type: Its own type as Go prints it, or what a list or map of it holds.
    """
    package = definition.rpartition(".")[0].split(".")
    version, _, name = go_type.rpartition("]")[2].rpartition(".")
    known = _values()
    for group in (package[-2], "core"):
        values = known.get(f"{group}.{version}.{name}", known.get(f"{group}.{name}"))
        if values is not None:
            return values.split("|") if values else None
    return None


@cache
def _values() -> dict[str, str]:
    # Where a line was broken, between two values, there is a blank less than it took.
    return {name: values.replace("| ", "|") for name, values in lines_by_type(_TABLE).items()}


_TABLE: Final = """\
[admissionregistration]
FailurePolicyType Fail|Ignore
v1beta1.FailurePolicyType
MatchPolicyType Equivalent|Exact
v1beta1.MatchPolicyType
OperationType *|CONNECT|CREATE|DELETE|UPDATE
PatchType ApplyConfiguration|JSONPatch
ReinvocationPolicyType IfNeeded|Never
ScopeType *|Cluster|Namespaced
SideEffectClass None|NoneOnDryRun|Some|Unknown
v1beta1.SideEffectClass
ValidationAction Audit|Deny|Warn
[apiextensions]
FieldValueErrorReason FieldValueDuplicate|FieldValueForbidden|FieldValueInvalid|FieldValueRequired
[apps]
DaemonSetUpdateStrategyType OnDelete|RollingUpdate
DeploymentStrategyType Recreate|RollingUpdate
PodManagementPolicyType OrderedReady|Parallel
StatefulSetUpdateStrategyType OnDelete|RollingUpdate
[autoscaling]
MetricSourceType ContainerResource|External|Object|Pods|Resource
v2.MetricSourceType
[batch]
CompletionMode Indexed|NonIndexed
ConcurrencyPolicy Allow|Forbid|Replace
PodFailurePolicyAction Count|FailIndex|FailJob|Ignore
PodFailurePolicyOnExitCodesOperator In|NotIn
PodReplacementPolicy Failed|TerminatingOrFailed
[certificates]
KeyUsage any|cert sign|client auth|code signing|content commitment|crl sign|data encipherment|decipher only|
 digital signature|email protection|encipher only|ipsec end system|ipsec tunnel|ipsec user|key agreement|
 key encipherment|microsoft sgc|netscape sgc|ocsp signing|s/mime|server auth|signing|timestamping
v1beta1.KeyUsage
[core]
AppArmorProfileType Localhost|RuntimeDefault|Unconfined
AzureDataDiskCachingMode None|ReadOnly|ReadWrite
AzureDataDiskKind Dedicated|Managed|Shared
ClaimResourceStatus ControllerResizeInProgress|ControllerResizeInfeasible|NodeResizeInProgress|NodeResizeInfeasible|
 NodeResizePending
DNSPolicy ClusterFirst|ClusterFirstWithHostNet|Default|None
HostPathType |BlockDevice|CharDevice|Directory|DirectoryOrCreate|File|FileOrCreate|Socket
IPFamily |IPv4|IPv6
IPFamilyPolicy PreferDualStack|RequireDualStack|SingleStack
MountPropagationMode Bidirectional|HostToContainer|None
NamespacePhase Active|Terminating
NodeInclusionPolicy Honor|Ignore
NodePhase Pending|Running|Terminated
NodeSelectorOperator DoesNotExist|Exists|Gt|In|Lt|NotIn
PersistentVolumeAccessMode ReadOnlyMany|ReadWriteMany|ReadWriteOnce|ReadWriteOncePod
PersistentVolumeClaimModifyVolumeStatus InProgress|Infeasible|Pending
PersistentVolumeClaimPhase Bound|Lost|Pending
PersistentVolumeMode Block|Filesystem
PersistentVolumePhase Available|Bound|Failed|Pending|Released
PersistentVolumeReclaimPolicy Delete|Recycle|Retain
PodFSGroupChangePolicy Always|OnRootMismatch
PodPhase Failed|Pending|Running|Succeeded|Unknown
PodQOSClass BestEffort|Burstable|Guaranteed
PreemptionPolicy Never|PreemptLowerPriority
ProcMountType Default|Unmasked
Protocol SCTP|TCP|UDP
PullPolicy Always|IfNotPresent|Never
ResourceQuotaScope BestEffort|CrossNamespacePodAffinity|NotBestEffort|NotTerminating|PriorityClass|Terminating|
 VolumeAttributesClass
RestartPolicy Always|Never|OnFailure
ScopeSelectorOperator DoesNotExist|Exists|In|NotIn
SeccompProfileType Localhost|RuntimeDefault|Unconfined
ServiceAffinity ClientIP|None
ServiceExternalTrafficPolicy Cluster|Local
ServiceInternalTrafficPolicy Cluster|Local
ServiceType ClusterIP|ExternalName|LoadBalancer|NodePort
Signal SIGABRT|SIGALRM|SIGBUS|SIGCHLD|SIGCLD|SIGCONT|SIGFPE|SIGHUP|SIGILL|SIGINT|SIGIO|SIGIOT|SIGKILL|SIGPIPE|SIGPOLL|
 SIGPROF|SIGPWR|SIGQUIT|SIGRTMAX|SIGRTMAX-1|SIGRTMAX-10|SIGRTMAX-11|SIGRTMAX-12|SIGRTMAX-13|SIGRTMAX-14|SIGRTMAX-2|
 SIGRTMAX-3|SIGRTMAX-4|SIGRTMAX-5|SIGRTMAX-6|SIGRTMAX-7|SIGRTMAX-8|SIGRTMAX-9|SIGRTMIN|SIGRTMIN+1|SIGRTMIN+10|
 SIGRTMIN+11|SIGRTMIN+12|SIGRTMIN+13|SIGRTMIN+14|SIGRTMIN+15|SIGRTMIN+2|SIGRTMIN+3|SIGRTMIN+4|SIGRTMIN+5|SIGRTMIN+6|
 SIGRTMIN+7|SIGRTMIN+8|SIGRTMIN+9|SIGSEGV|SIGSTKFLT|SIGSTOP|SIGSYS|SIGTERM|SIGTRAP|SIGTSTP|SIGTTIN|SIGTTOU|SIGURG|
 SIGUSR1|SIGUSR2|SIGVTALRM|SIGWINCH|SIGXCPU|SIGXFSZ
SupplementalGroupsPolicy Merge|Strict
TaintEffect NoExecute|NoSchedule|PreferNoSchedule
TerminationMessagePolicy FallbackToLogsOnError|File
TolerationOperator Equal|Exists|Gt|Lt
URIScheme HTTP|HTTPS
UnsatisfiableConstraintAction DoNotSchedule|ScheduleAnyway
[networking]
PolicyType Egress|Ingress
[policy]
UnhealthyPodEvictionPolicyType AlwaysAllow|IfHealthyBudget
[resource]
AllocationConfigSource FromClaim|FromClass
DeviceTaintEffect NoExecute|NoSchedule|None
DeviceTolerationOperator Equal|Exists
[scheduling]
DisruptionMode Pod|PodGroup
[storage]
VolumeBindingMode Immediate|WaitForFirstConsumer
v1beta1.VolumeBindingMode
"""
