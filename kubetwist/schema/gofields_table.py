"""
Exceptions from the rules of L{kubetwist.schema.gofields} for the fields of Go types.

Source: the C{json} tags and field types in the C{types.go} files of k8s.io/api, apimachinery, apiextensions-apiserver
and kube-aggregator, releases 1.25 to 1.37. If releases differ, the newest one counts, except where the table has both.

A line C{[group]} begins the types of an API group. Each following line has the exceptions of one type: its name,
prefixed by a version if they apply to that version only, and its fields. A line that begins with a blank continues the
previous one. A field has the format C{name=presence:gotype@embedding}, of which every part but the name is optional:
C{presence} is a constant of L{kubetwist.schema.gofields}, C{~} in C{gotype} is the package of the type, and
C{embedding} has the embedded structs that contain the field. C{presence|earlier<release} has another presence before a
release.

C{dependencies} of a schema is not a pointer, but is never encoded, since validation rejects it even if it is empty.
"""

TABLE = """
[admissionregistration]
MatchResources matchPolicy=p:~MatchPolicyType
MutatingAdmissionPolicySpec failurePolicy=p:~FailurePolicyType reinvocationPolicy:v1.ReinvocationPolicyType
MutatingWebhook failurePolicy=p:~FailurePolicyType matchPolicy=p:~MatchPolicyType
 reinvocationPolicy=p:~ReinvocationPolicyType sideEffects=n:~SideEffectClass
Mutation patchType:~PatchType
NamedRuleWithOperations apiGroups@RuleWithOperations.Rule apiVersions@RuleWithOperations.Rule
 operations:[]v1.OperationType@RuleWithOperations resources@RuleWithOperations.Rule
 scope=p:v1.ScopeType@RuleWithOperations.Rule
ParamRef parameterNotFoundAction=p:~ParameterNotFoundActionType
RuleWithOperations apiGroups@Rule apiVersions@Rule operations:[]~OperationType resources@Rule scope=p:~ScopeType@Rule
ServiceReference path=p
ValidatingAdmissionPolicyBindingList items=a
ValidatingAdmissionPolicyBindingSpec policyName=o validationActions=o:[]~ValidationAction
ValidatingAdmissionPolicyList items=a
ValidatingAdmissionPolicySpec failurePolicy=p:~FailurePolicyType variables=o
ValidatingAdmissionPolicyStatus observedGeneration=o
ValidatingWebhook failurePolicy=p:~FailurePolicyType matchPolicy=p:~MatchPolicyType sideEffects=n:~SideEffectClass
Validation reason=p:v1.StatusReason
WebhookClientConfig url=p
v1.MutatingAdmissionPolicySpec reinvocationPolicy:~ReinvocationPolicyType
v1.NamedRuleWithOperations operations:[]~OperationType@RuleWithOperations scope=p:~ScopeType@RuleWithOperations.Rule
v1.Validation reason=p:~StatusReason
[apiextensions]
CustomResourceColumnDefinition priority=o
CustomResourceConversion strategy:~ConversionStrategyType
CustomResourceDefinitionCondition observedGeneration=o status:~ConditionStatus
 type:~CustomResourceDefinitionConditionType
CustomResourceDefinitionSpec preserveUnknownFields=o scope:~ResourceScope
CustomResourceDefinitionStatus acceptedNames=a conditions=a observedGeneration=o storedVersions=a
CustomResourceDefinitionVersion deprecated=o deprecationWarning=p
CustomResourceSubresourceScale labelSelectorPath=p
CustomResourceSubresources status=p
JSONSchemaProps $ref=p $schema:~JSONSchemaURL definitions:~JSONSchemaDefinitions dependencies=p:~JSONSchemaDependencies
 exclusiveMaximum=o exclusiveMinimum=o nullable=o uniqueItems=o x-kubernetes-embedded-resource=o
 x-kubernetes-int-or-string=o x-kubernetes-list-type=p x-kubernetes-map-type=p
 x-kubernetes-validations:~ValidationRules
ServiceReference path=p
ValidationRule reason=p:~FieldValueErrorReason
WebhookClientConfig url=p
[apiregistration]
APIServiceCondition status:~ConditionStatus type:~APIServiceConditionType
APIServiceSpec insecureSkipTLSVerify=o
[apiserverinternal]
ServerStorageVersion apiServerID=o decodableVersions=o encodingVersion=o
StorageVersionCondition message=o observedGeneration=o status:~ConditionStatus type:~StorageVersionConditionType
StorageVersionStatus commonEncodingVersion=p
[apps]
ControllerRevision data=a revision=a
DaemonSetCondition status=a:~ConditionStatus type=a:~DaemonSetConditionType
DaemonSetSpec minReadySeconds=o selector=n updateStrategy=a
DaemonSetStatus numberAvailable=o numberUnavailable=o observedGeneration=o updatedNumberScheduled=o
DaemonSetUpdateStrategy type:~DaemonSetUpdateStrategyType
DeploymentCondition status=a:~ConditionStatus type=a:~DeploymentConditionType
DeploymentSpec minReadySeconds=o paused=o selector=n strategy=a
DeploymentStatus availableReplicas=o observedGeneration=o readyReplicas=o replicas=o unavailableReplicas=o
 updatedReplicas=o
DeploymentStrategy type:~DeploymentStrategyType
ReplicaSetCondition status=a:~ConditionStatus type=a:~ReplicaSetConditionType
ReplicaSetSpec minReadySeconds=o selector=n template=a
ReplicaSetStatus availableReplicas=o fullyLabeledReplicas=o observedGeneration=o readyReplicas=o
StatefulSetCondition status=a:~ConditionStatus type=a:~StatefulSetConditionType
StatefulSetOrdinals start=a
StatefulSetPersistentVolumeClaimRetentionPolicy whenDeleted:~PersistentVolumeClaimRetentionPolicyType
 whenScaled:~PersistentVolumeClaimRetentionPolicyType
StatefulSetSpec minReadySeconds=o podManagementPolicy:~PodManagementPolicyType selector=n serviceName=a
 updateStrategy=a
StatefulSetStatus availableReplicas=a currentReplicas=o observedGeneration=o readyReplicas=o updatedReplicas=o
StatefulSetUpdateStrategy type:~StatefulSetUpdateStrategyType
[authentication]
BoundObjectReference uid:types.UID
SelfSubjectReviewStatus userInfo=a
TokenRequestSpec attestations:map[string]~AttestationValue audiences=a boundObjectRef=n expirationSeconds=n
TokenRequestStatus token=a
TokenReviewSpec token=o
TokenReviewStatus authenticated=o user=a
UserInfo extra:map[string]~ExtraValue
[authorization]
SubjectAccessReviewSpec extra:map[string]~ExtraValue
SubjectAccessReviewStatus denied=o
[autoscaling]
ContainerResourceMetricSource name:v1.ResourceName
ContainerResourceMetricStatus name:v1.ResourceName
HPAScalingPolicy type:~HPAScalingPolicyType
HPAScalingRules policies=p selectPolicy=p:~ScalingPolicySelect
HorizontalPodAutoscalerCondition status:v1.ConditionStatus type:~HorizontalPodAutoscalerConditionType
HorizontalPodAutoscalerStatus conditions=o currentMetrics=a currentReplicas=a lastScaleTime=p
MetricSpec type:~MetricSourceType
MetricStatus type:~MetricSourceType
MetricTarget type:~MetricTargetType
ResourceMetricSource name:v1.ResourceName
ResourceMetricStatus name:v1.ResourceName
ScaleSpec replicas=o
v2.HorizontalPodAutoscalerStatus currentReplicas=o
v2beta2.HorizontalPodAutoscalerStatus conditions=a
[batch]
CronJobSpec concurrencyPolicy:~ConcurrencyPolicy timeZone=p
CronJobStatus lastScheduleTime=p lastSuccessfulTime=p
JobCondition status:~ConditionStatus type:~JobConditionType
JobSpec completionMode=p:~CompletionMode managedBy=p podReplacementPolicy=p:~PodReplacementPolicy
JobStatus active=o completionTime=p failed=o failedIndexes=p startTime=p succeeded=o
PodFailurePolicyOnExitCodesRequirement containerName=p operator:~PodFailurePolicyOnExitCodesOperator
PodFailurePolicyOnPodConditionsPattern status=a:~ConditionStatus type:~PodConditionType
PodFailurePolicyRule action:~PodFailurePolicyAction onExitCodes=p onPodConditions=o
SuccessPolicyRule succeededIndexes=p
UncountedTerminatedPods failed:[]types.UID succeeded:[]types.UID
[certificates]
CertificateSigningRequestCondition status:~ConditionStatus type:~RequestConditionType
CertificateSigningRequestSpec extra:map[string]~ExtraValue usages:[]~KeyUsage
PodCertificateRequestSpec nodeName:types.NodeName nodeUID:types.UID pkixPublicKey=a podUID:types.UID
 proofOfPossession=a serviceAccountUID:types.UID
PodCertificateRequestStatus beginRefreshAt=p notAfter=p notBefore=p
[coordination]
LeaseCandidateSpec preferredStrategies=o:[]v1.CoordinatedLeaseStrategy strategy=o:v1.CoordinatedLeaseStrategy
LeaseSpec holderIdentity=p preferredHolder=p strategy=p:~CoordinatedLeaseStrategy
[core]
AWSElasticBlockStoreVolumeSource partition=o readOnly=o
AppArmorProfile localhostProfile=p type:~AppArmorProfileType
AttachedVolume name:~UniqueVolumeName
AzureDiskVolumeSource cachingMode=p:~AzureDataDiskCachingMode fsType=p kind=p:~AzureDataDiskKind
AzureFilePersistentVolumeSource readOnly=o secretNamespace=n
AzureFileVolumeSource readOnly=o
CSIPersistentVolumeSource readOnly=o
CSIVolumeSource fsType=p
Capabilities add:[]~Capability drop:[]~Capability
CephFSPersistentVolumeSource readOnly=o
CephFSVolumeSource readOnly=o
CinderPersistentVolumeSource readOnly=o
CinderVolumeSource readOnly=o
ClaimSource resourceClaimName=p resourceClaimTemplateName=p
ClusterTrustBundleProjection name=p signerName=p
ComponentCondition status:~ConditionStatus type:~ComponentConditionType
ConfigMapEnvSource name@LocalObjectReference
ConfigMapKeySelector name@LocalObjectReference
ConfigMapNodeConfigSource uid:types.UID
ConfigMapProjection items=o name@LocalObjectReference
ConfigMapVolumeSource items=o name@LocalObjectReference
Container imagePullPolicy:~PullPolicy resources=a restartPolicy=p:~ContainerRestartPolicy stdin=o stdinOnce=o
 terminationMessagePolicy:~TerminationMessagePolicy tty=o
ContainerImage names=a sizeBytes=o
ContainerPort hostPort=o protocol:~Protocol
ContainerResizePolicy resourceName:~ResourceName restartPolicy:~ResourceResizeRestartPolicy
ContainerRestartRule action=o:~ContainerRestartRuleAction
ContainerRestartRuleOnExitCodes operator=o:~ContainerRestartRuleOnExitCodesOperator
ContainerStateTerminated signal=o
ContainerStatus allocatedResources:~ResourceList lastState=a state=a stopSignal=p:~Signal
DownwardAPIProjection items=o
DownwardAPIVolumeSource items=o
EmptyDirVolumeSource medium:~StorageMedium
EndpointAddress nodeName=p
EndpointPort appProtocol=p protocol:~Protocol
EphemeralContainer args@EphemeralContainerCommon command@EphemeralContainerCommon env@EphemeralContainerCommon
 envFrom@EphemeralContainerCommon image@EphemeralContainerCommon imagePullPolicy:~PullPolicy@EphemeralContainerCommon
 lifecycle@EphemeralContainerCommon livenessProbe@EphemeralContainerCommon name@EphemeralContainerCommon
 ports@EphemeralContainerCommon readinessProbe@EphemeralContainerCommon resizePolicy@EphemeralContainerCommon
 resources=a@EphemeralContainerCommon restartPolicy=p:~ContainerRestartPolicy@EphemeralContainerCommon
 restartPolicyRules@EphemeralContainerCommon securityContext@EphemeralContainerCommon
 startupProbe@EphemeralContainerCommon stdin=o@EphemeralContainerCommon stdinOnce=o@EphemeralContainerCommon
 terminationMessagePath@EphemeralContainerCommon
 terminationMessagePolicy:~TerminationMessagePolicy@EphemeralContainerCommon tty=o@EphemeralContainerCommon
 volumeDevices@EphemeralContainerCommon volumeMounts@EphemeralContainerCommon workingDir@EphemeralContainerCommon
Event count=o eventTime=a reportingComponent=a reportingInstance=a source=a
EventSeries count=o lastObservedTime=a
EvictionResponder priority=n
FCVolumeSource readOnly=o
FlexPersistentVolumeSource readOnly=o
FlexVolumeSource readOnly=o
GCEPersistentDiskVolumeSource partition=o readOnly=o
GRPCAction mode=p:~GRPCProbeMode service=n
GlusterfsPersistentVolumeSource endpointsNamespace=p readOnly=o
GlusterfsVolumeSource readOnly=o
HTTPGetAction protocol=p:~HTTPProtocol scheme:~URIScheme
HostPathVolumeSource type=p:~HostPathType
ISCSIPersistentVolumeSource chapAuthDiscovery=o chapAuthSession=o initiatorName=p readOnly=o
ISCSIVolumeSource chapAuthDiscovery=o chapAuthSession=o initiatorName=p readOnly=o
ImageVolumeSource pullPolicy:~PullPolicy
ImageVolumeStatus imageRef=o
Lifecycle stopSignal=p:~Signal
LimitRangeItem default:~ResourceList defaultRequest:~ResourceList max:~ResourceList maxLimitRequestRatio:~ResourceList
 min:~ResourceList type:~LimitType
LoadBalancerIngress ipMode=p:~LoadBalancerIPMode
LocalVolumeSource fsType=p
ModifyVolumeStatus status:~PersistentVolumeClaimModifyVolumeStatus
NFSVolumeSource readOnly=o
NamespaceCondition status:~ConditionStatus type:~NamespaceConditionType
NamespaceSpec finalizers:[]~FinalizerName
NamespaceStatus phase:~NamespacePhase
NodeAddress type:~NodeAddressType
NodeAllocatableMappedResources name:~ResourceName quantity=n
NodeAllocatableOverheadResources name:~ResourceName
NodeAllocatableResourceClaimStatus resources=a:map[~ResourceName]resource.Quantity
NodeCondition status:~ConditionStatus type:~NodeConditionType
NodeDaemonEndpoints kubeletEndpoint=a
NodeRuntimeHandler name=a
NodeSelectorRequirement operator:~NodeSelectorOperator
NodeSpec unschedulable=o
NodeStatus allocatable:~ResourceList capacity:~ResourceList daemonEndpoints=a nodeInfo=a phase:~NodePhase
 volumesInUse:[]~UniqueVolumeName
ObjectReference uid:types.UID
PersistentVolumeClaimCondition status:~ConditionStatus type:~PersistentVolumeClaimConditionType
PersistentVolumeClaimSpec accessModes:[]~PersistentVolumeAccessMode resources=a storageClassName=p
 volumeAttributesClassName=p volumeMode=p:~PersistentVolumeMode
PersistentVolumeClaimStatus accessModes:[]~PersistentVolumeAccessMode
 allocatedResourceStatuses:map[~ResourceName]~ClaimResourceStatus allocatedResources:~ResourceList
 capacity:~ResourceList currentVolumeAttributesClassName=p phase:~PersistentVolumeClaimPhase
 resizeStatus=p:~PersistentVolumeClaimResizeStatus
PersistentVolumeClaimVolumeSource readOnly=o
PersistentVolumeSpec accessModes:[]~PersistentVolumeAccessMode awsElasticBlockStore@PersistentVolumeSource
 azureDisk@PersistentVolumeSource azureFile@PersistentVolumeSource capacity:~ResourceList
 cephfs@PersistentVolumeSource cinder@PersistentVolumeSource csi@PersistentVolumeSource fc@PersistentVolumeSource
 flexVolume@PersistentVolumeSource flocker@PersistentVolumeSource gcePersistentDisk@PersistentVolumeSource
 glusterfs@PersistentVolumeSource hostPath@PersistentVolumeSource iscsi@PersistentVolumeSource
 local@PersistentVolumeSource nfs@PersistentVolumeSource persistentVolumeReclaimPolicy:~PersistentVolumeReclaimPolicy
 photonPersistentDisk@PersistentVolumeSource portworxVolume@PersistentVolumeSource quobyte@PersistentVolumeSource
 rbd@PersistentVolumeSource scaleIO@PersistentVolumeSource storageos@PersistentVolumeSource
 volumeAttributesClassName=p volumeMode=p:~PersistentVolumeMode vsphereVolume@PersistentVolumeSource
PersistentVolumeStatus lastPhaseTransitionTime=p phase:~PersistentVolumePhase
PodCertificateProjection keyType=o signerName=o
PodCondition observedGeneration=o status:~ConditionStatus type:~PodConditionType
PodDNSConfigOption value=p
PodOS name:~OSName
PodReadinessGate conditionType:~PodConditionType
PodResourceClaim resourceClaimName=p resourceClaimTemplateName=p source=a
PodResourceClaimStatus resourceClaimName=p
PodSchedulingGroup podGroupName=p
PodSecurityContext fsGroupChangePolicy=p:~PodFSGroupChangePolicy seLinuxChangePolicy=p:~PodSELinuxChangePolicy
 supplementalGroupsPolicy=p:~SupplementalGroupsPolicy
PodSpec dnsPolicy:~DNSPolicy hostIPC=o hostNetwork=o hostPID=o hostnameOverride=p overhead:~ResourceList
 preemptionPolicy=p:~PreemptionPolicy restartPolicy:~RestartPolicy runtimeClassName=p
PodStatus allocatedResources:~ResourceList observedGeneration=o phase:~PodPhase qosClass:~PodQOSClass
 resize:~PodResizeStatus startTime=p
PodTemplate template=a
PortStatus error=p protocol:~Protocol
PortworxVolumeSource readOnly=o
Probe exec@ProbeHandler failureThreshold=o grpc@ProbeHandler httpGet@ProbeHandler initialDelaySeconds=o
 periodSeconds=o successThreshold=o tcpSocket@ProbeHandler timeoutSeconds=o
ProjectedVolumeSource sources=a
QuobyteVolumeSource readOnly=o
RBDPersistentVolumeSource readOnly=o
RBDVolumeSource readOnly=o
ReplicationControllerCondition status:~ConditionStatus type:~ReplicationControllerConditionType
ReplicationControllerSpec minReadySeconds=o
ReplicationControllerStatus availableReplicas=o fullyLabeledReplicas=o observedGeneration=o readyReplicas=o
ResourceFieldSelector divisor=a
ResourceHealth health:~ResourceHealthStatus message=p resourceID:~ResourceID
ResourceQuotaSpec hard:~ResourceList scopes:[]~ResourceQuotaScope
ResourceQuotaStatus hard:~ResourceList used:~ResourceList
ResourceRequirements limits:~ResourceList requests:~ResourceList
ResourceStatus name:~ResourceName
ScaleIOPersistentVolumeSource readOnly=o secretRef=n sslEnabled=o
ScaleIOVolumeSource readOnly=o secretRef=n sslEnabled=o
ScopedResourceSelectorRequirement operator:~ScopeSelectorOperator scopeName:~ResourceQuotaScope
SeccompProfile localhostProfile=p type:~SeccompProfileType
Secret type:~SecretType
SecretEnvSource name@LocalObjectReference
SecretKeySelector name@LocalObjectReference
SecretProjection items=o name@LocalObjectReference
SecretVolumeSource items=o
SecurityContext procMount=p:~ProcMountType
ServicePort appProtocol=p nodePort=o protocol:~Protocol targetPort=a
ServiceSpec externalTrafficPolicy:~ServiceExternalTrafficPolicy healthCheckNodePort=o
 internalTrafficPolicy=p:~ServiceInternalTrafficPolicy ipFamilies:[]~IPFamily ipFamilyPolicy=p:~IPFamilyPolicy
 loadBalancerClass=p publishNotReadyAddresses=o sessionAffinity:~ServiceAffinity trafficDistribution=p
 type:~ServiceType
ServiceStatus loadBalancer=a
StorageOSPersistentVolumeSource readOnly=o
StorageOSVolumeSource readOnly=o
Taint effect:~TaintEffect timeAdded=p
Toleration effect:~TaintEffect operator:~TolerationOperator
TopologySpreadConstraint nodeAffinityPolicy=p:~NodeInclusionPolicy nodeTaintsPolicy=p:~NodeInclusionPolicy
 whenUnsatisfiable:~UnsatisfiableConstraintAction
TypedLocalObjectReference apiGroup=n
TypedObjectReference apiGroup=n namespace=p
Volume awsElasticBlockStore@VolumeSource azureDisk@VolumeSource azureFile@VolumeSource cephfs@VolumeSource
 cinder@VolumeSource configMap@VolumeSource csi@VolumeSource downwardAPI@VolumeSource emptyDir@VolumeSource
 ephemeral@VolumeSource fc@VolumeSource flexVolume@VolumeSource flocker@VolumeSource gcePersistentDisk@VolumeSource
 gitRepo@VolumeSource glusterfs@VolumeSource hostPath@VolumeSource image@VolumeSource iscsi@VolumeSource
 nfs@VolumeSource persistentVolumeClaim@VolumeSource photonPersistentDisk@VolumeSource portworxVolume@VolumeSource
 projected@VolumeSource quobyte@VolumeSource rbd@VolumeSource scaleIO@VolumeSource secret@VolumeSource
 storageos@VolumeSource vsphereVolume@VolumeSource
VolumeHealthCondition status:~VolumeHealthStatusType
VolumeMount mountPropagation=p:~MountPropagationMode readOnly=o recursiveReadOnly=p:~RecursiveReadOnlyMode
VolumeMountStatus readOnly=o recursiveReadOnly=p:~RecursiveReadOnlyMode
VolumeResourceRequirements limits:~ResourceList requests:~ResourceList
WindowsSecurityContextOptions gmsaCredentialSpec=p gmsaCredentialSpecName=p runAsUserName=p
[discovery]
Endpoint conditions=a hostname=p nodeName=p zone=p
EndpointPort appProtocol=p name=p protocol=p:~Protocol
EndpointSlice addressType:~AddressType endpoints=a ports=a
[events]
Event deprecatedCount=o deprecatedSource=a regarding=a
[flowcontrol]
FlowDistinguisherMethod type:~FlowDistinguisherMethodType
FlowSchemaCondition status:~ConditionStatus type=o:~FlowSchemaConditionType
FlowSchemaSpec matchingPrecedence=a
LimitResponse type:~LimitResponseType
LimitedPriorityLevelConfiguration assuredConcurrencyShares=a limitResponse=a nominalConcurrencyShares=a
PriorityLevelConfigurationCondition status:~ConditionStatus type=o:~PriorityLevelConfigurationConditionType
PriorityLevelConfigurationSpec type:~PriorityLevelEnablement
QueuingConfiguration handSize=a queueLengthLimit=a queues=a
ResourcePolicyRule clusterScope=o namespaces=a
Subject kind:~SubjectKind
v1.LimitedPriorityLevelConfiguration nominalConcurrencyShares=n
[lifecycle]
EvictionPodReference uid:types.UID
EvictionRequestPodReference uid:types.UID
EvictionRequestSpec intent:~EvictionRequestIntent
Requester intent:~RequesterIntent
ResponderStatus completionTime=p expectedCompletionTime=p heartbeatTime=p message=p startTime=p
TargetResponder priority=n state:~ResponderStateType
[meta]
APIGroup preferredVersion=a
APIResource verbs:~Verbs
Condition observedGeneration=o status:~ConditionStatus
DeleteOptions propagationPolicy=p:~DeletionPropagation
FieldSelectorRequirement operator:~FieldSelectorOperator
LabelSelectorRequirement operator:~LabelSelectorOperator
ManagedFieldsEntry operation:~ManagedFieldsOperationType time=p
ObjectMeta creationTimestamp=z|a<1.34 deletionTimestamp=p generation=o uid:types.UID
OwnerReference uid:types.UID
Preconditions resourceVersion=p uid=p:types.UID
Status code=o reason:~StatusReason
StatusCause reason:~CauseType
StatusDetails retryAfterSeconds=o uid:types.UID
[networking]
ClusterCIDRSpec ipv4=a ipv6=a
HTTPIngressPath pathType=n:~PathType
IPAddressSpec parentRef=p
IngressClassParametersReference apiGroup=p namespace=p scope=n
IngressPortStatus error=p protocol:~Protocol
IngressRule http@IngressRuleValue
IngressServiceBackend port=a
IngressSpec ingressClassName=p
IngressStatus loadBalancer=a
NetworkPolicyPort protocol=p:~Protocol
NetworkPolicySpec podSelector=a policyTypes:[]~PolicyType
ParentReference name=o resource=o uid:types.UID
ServiceBackendPort number=o
[node]
Overhead podFixed:~ResourceList
[policy]
PodDisruptionBudgetSpec unhealthyPodEvictionPolicy=p:~UnhealthyPodEvictionPolicyType
PodDisruptionBudgetStatus currentHealthy=a desiredHealthy=a disruptionsAllowed=a expectedPods=a observedGeneration=o
[rbac]
ClusterRole rules=a
Role rules=a
RoleRef apiGroup=a
[resource]
AllocatedDeviceStatus conditions=a data=p|a<1.33 shareID=p
AllocationResult allocationTimestamp=p devices=a shareable=o
BasicDevice attributes:map[~QualifiedName]~DeviceAttribute capacity:map[~QualifiedName]resource.Quantity
 nodeAllocatableResourceMappings:map[v1.ResourceName]~NodeAllocatableResourceMapping
 nodeAllocatableResources:map[v1.ResourceName]~NodeAllocatableResource nodeName=p
CapacityRequestPolicy default=n
CapacityRequestPolicyRange min=p
CapacityRequirements requests:map[~QualifiedName]resource.Quantity
Device attributes:map[~QualifiedName]~DeviceAttribute capacity:map[~QualifiedName]~DeviceCapacity
 nodeAllocatableResourceMappings:map[~ResourceName]~NodeAllocatableResourceMapping
 nodeAllocatableResources:map[~ResourceName]~NodeAllocatableResource nodeName=p
DeviceAllocationConfiguration opaque@DeviceConfiguration source:~AllocationConfigSource
DeviceAttribute string=p version=p
DeviceClaim requests=a
DeviceClaimConfiguration opaque@DeviceConfiguration
DeviceClassConfiguration opaque@DeviceConfiguration
DeviceClassSpec extendedResourceName=p
DeviceConstraint distinctAttribute=p:~FullyQualifiedName matchAttribute=p:~FullyQualifiedName
DeviceRequest adminAccess=p allocationMode:~DeviceAllocationMode count=o deviceClassName=a
DeviceRequestAllocationResult adminAccess=p|n<1.34 consumedCapacity:map[~QualifiedName]resource.Quantity
 shareID=p:types.UID
 skipNodeOperations:[]~SkipNodeOperation
DeviceSubRequest allocationMode:~DeviceAllocationMode count=o
DeviceTaint effect:~DeviceTaintEffect timeAdded=p
DeviceTaintSelector device=p deviceClassName=p driver=p pool=p
DeviceToleration effect:~DeviceTaintEffect operator:~DeviceTolerationOperator
DriverAllocationResult namedResources@AllocationResultModel vendorRequestParameters=a
DriverRequests vendorParameters=a
ExactDeviceRequest allocationMode:~DeviceAllocationMode count=o
NamedResourcesAttribute bool@NamedResourcesAttributeValue int@NamedResourcesAttributeValue
 intSlice@NamedResourcesAttributeValue quantity@NamedResourcesAttributeValue string=p@NamedResourcesAttributeValue
 stringSlice@NamedResourcesAttributeValue version=p@NamedResourcesAttributeValue
NodeAllocatableMapping capacityKey=p:~QualifiedName
NodeAllocatableResourceMapping capacityKey=p:~QualifiedName
PartitionTypeStatus allocatable=p attribute=o total=p type=o
PoolStatus driver=o nodeName=p poolName=o validationError=p
ResourceClaimConsumerReference uid:types.UID
ResourceClaimParameters shareable=o
ResourceClaimSpec allocationMode:~AllocationMode devices=a
ResourceClaimStatus deallocationRequested=o
ResourceFilter namedResources@ResourceFilterModel
ResourcePoolStatusRequest status=p
ResourcePoolStatusRequestSpec defaultPartitionTypeAttribute=p poolName=p
ResourcePoolStatusRequestStatus poolCount=p
ResourceRequest namedResources@ResourceRequestModel vendorParameters=a
ResourceSlice namedResources@ResourceModel
ResourceSliceList listMeta=a
ResourceSliceSpec allNodes=o devices=o|a<1.35 nodeName=o partitionTypeAttribute=p:~FullyQualifiedName
 skipNodeOperations:[]~SkipNodeOperation
ShareableCapacityStatus available=p consumed=p name=o total=p
ShareableSummaryStatus fullyAvailableDevices=p partiallyAvailableDevices=p
StructuredResourceHandle vendorClaimParameters=a vendorClassParameters=a
VendorParameters parameters=a
v1.ResourceSliceSpec allNodes=p nodeName=p
v1alpha3.DeviceRequestAllocationResult adminAccess=n
v1alpha3.ResourceSliceSpec devices=a
v1beta1.BasicDevice capacity:map[~QualifiedName]~DeviceCapacity
v1beta2.Device nodeAllocatableResourceMappings:map[v1.ResourceName]~NodeAllocatableResourceMapping
 nodeAllocatableResources:map[v1.ResourceName]~NodeAllocatableResource
v1beta2.ResourceSliceSpec allNodes=p nodeName=p
[scheduling]
CompositePodGroupSpec parentCompositePodGroupName=p preemptionPolicy=p:~PreemptionPolicy workloadRef=n
CompositePodGroupTemplate preemptionPolicy=p:~PreemptionPolicy
PodGroupResourceClaim resourceClaimName=p resourceClaimTemplateName=p
PodGroupResourceClaimStatus resourceClaimName=p
PodGroupSpec disruptionMode=p:~DisruptionMode parentCompositePodGroupName=p podGroupTemplateRef=n
 preemptionPolicy=p:~PreemptionPolicy
PodGroupTemplate disruptionMode=p:~DisruptionMode preemptionPolicy=p:~PreemptionPolicy schedulingConstraints=n
PodGroupTemplateReference workload=n
PriorityClass globalDefault=o preemptionPolicy=p:~PreemptionPolicy value=a
WorkloadPodGroupResourceClaim resourceClaimName=p resourceClaimTemplateName=p
WorkloadSpec podGroupTemplates=a
[storage]
CSIDriverSpec fsGroupPolicy=p:~FSGroupPolicy volumeLifecycleModes:[]~VolumeLifecycleMode
CSINodeDriver topologyKeys=a
StorageClass reclaimPolicy=p:~PersistentVolumeReclaimPolicy volumeBindingMode=p:~VolumeBindingMode
StorageHealthCondition accessMode=p:~PersistentVolumeAccessMode status:~StorageHealthStatusType
 volumeMode=p:~PersistentVolumeMode
VolumeAttachmentSource persistentVolumeName=p
[storagemigration]
MigrationCondition status:v1.ConditionStatus type:~MigrationConditionType
"""
