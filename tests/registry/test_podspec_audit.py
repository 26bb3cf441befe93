"""Tests for the rules of pods that few pods break, through the strategy of pods."""

from __future__ import annotations

from typing import Any

import orjson

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from kubetwist.registry.strategies.pods import PodStrategy
from kubetwist.registry.validation.podupdates import validate_pod_status_update, validate_resize
from kubetwist.registry.validation.security import unprivileged

CONTAINER = {"name": "c", "image": "app:1"}
METADATA = {"name": "x", "namespace": "ns", "uid": "u"}
SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_C = "container.seccomp.security.alpha.kubernetes.io/c"
APP_ARMOR_C = "container.apparmor.security.beta.kubernetes.io/c"
MIRROR = "kubernetes.io/config.mirror"


def pod(annotations: dict[str, str] | None = None, status: Any = None, **spec: Any) -> dict[str, Any]:
    """A pod as it is when it is validated."""
    metadata = {**METADATA, **({"annotations": annotations} if annotations else {})}
    obj: dict[str, Any] = orjson.loads(
        orjson.dumps({"metadata": metadata, "spec": {"containers": [CONTAINER], **spec}})
    )
    strategy_for("", "Pod").default(obj)
    strategy_for("", "Pod").prepare_for_create(obj)
    if status is not None:
        obj["status"] = status
    return obj


def problems(annotations: dict[str, str] | None = None, **spec: Any) -> list[str]:
    """What is wrong with a new pod."""
    return [str(cause) for cause in strategy_for("", "Pod").validate(pod(annotations, **spec))]


def in_container(**parts: Any) -> list[str]:
    """What is wrong with a pod whose container has C{parts}; without the container's path."""
    return [
        one.removeprefix("spec.containers[0].")
        for one in problems(containers=[{**CONTAINER, **parts}], volumes=VOLUMES)
    ]


def in_volume(**source: Any) -> list[str]:
    """What is wrong with a volume; without its path."""
    found = problems(volumes=[{"name": "v", **source}], serviceAccountName="a")
    return [one.removeprefix("spec.volumes[0]").removeprefix(".") for one in found]


VOLUMES = [{"name": "e", "emptyDir": {}}, {"name": "p", "persistentVolumeClaim": {"claimName": "p"}}]


class ContainerTests(SynchronousTestCase):
    """Containers of all sorts."""

    def test_files_of_variables(self) -> None:
        """A variable is read from a file in an empty directory."""

        def with_file(**reference: Any) -> list[str]:
            found = in_container(env=[{"name": "A", "valueFrom": {"fileKeyRef": reference}}])
            return [one.removeprefix("env[0].valueFrom.fileKeyRef.") for one in found]

        self.assertEqual(with_file(key="K", volumeName="e", path="a/b"), [])
        self.assertEqual(
            with_file(),
            ["key: Required value", "volumeName: Required value", "path: Required value", 'volumeName: Not found: ""'],
        )
        self.assertEqual(
            with_file(key="K=", volumeName="p", path="../b"),
            [
                'key: Invalid value: "K=": a valid environment variable name must consist only of printable ASCII '
                "characters other than '='",
                "path: Invalid value: \"../b\": must not contain '..'",
                'volumeName: Invalid value: "p": referenced volume must be of type emptyDir',
            ],
        )
        self.assertEqual(
            in_container(env=[{"name": "A", "valueFrom": {}}]),
            [
                'env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, '
                "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
            ],
        )

    def test_variables_from(self) -> None:
        """Names of where many variables come from may end as if there were more of them."""
        self.assertEqual(in_container(envFrom=[{"configMapRef": {"name": "a-"}}, {"secretRef": {"name": "b-"}}]), [])

    def test_divisors(self) -> None:
        """What is not known of is not told to be pages of memory."""
        reference = {"resource": "limits.odd", "divisor": "3"}
        found = in_container(env=[{"name": "A", "valueFrom": {"resourceFieldRef": reference}}])
        self.assertEqual([one.partition(": ")[2][:30] for one in found], ['Unsupported value: "limits.odd'])

    def test_restart_rules(self) -> None:
        """Rules are told of in full, but for a container that starts a pod and has no policy."""
        self.assertEqual(
            in_container(restartPolicy="Never", restartPolicyRules=[{"exitCodes": {"values": [1] * 256}}] * 21)[:4],
            [
                "restartPolicyRules: Too many: 21: must have at most 20 items",
                'restartPolicyRules[0].action: Unsupported value: "": '
                'supported values: "Restart", "RestartAllContainers"',
                'restartPolicyRules[0].exitCodes.operator: Unsupported value: "": supported values: "In", "NotIn"',
                "restartPolicyRules[0].exitCodes.values: Too many: 256: must have at most 255 items",
            ],
        )
        self.assertEqual(
            problems(initContainers=[{**CONTAINER, "name": "i", "restartPolicyRules": [{}]}]),
            [
                "spec.initContainers[0].restartPolicy: Required value: "
                "must specify restartPolicy when restart rules are used"
            ],
        )

    def test_resize_policies(self) -> None:
        """What ends before the pod runs is not started again for more of something."""
        policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
        starting = {**CONTAINER, "name": "i", "resizePolicy": policy}
        wrong = (
            'spec.initContainers[0].resizePolicy[0].restartPolicy: Invalid value: "RestartContainer": '
            "must not be set to 'RestartContainer' for non-sidecar initContainers"
        )
        self.assertEqual(problems(initContainers=[starting]), [wrong])
        self.assertEqual(problems(initContainers=[{**starting, "restartPolicy": "Always"}]), [])
        before = pod(initContainers=[starting])
        self.assertEqual(strategy_for("", "Pod").validate_update(before, before), [])
        self.assertEqual(
            problems(restartPolicy="Never", containers=[{**CONTAINER, "resizePolicy": policy}]),
            [
                'spec.containers[0].resizePolicy: Invalid value: "RestartContainer": '
                "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            ],
        )

    def test_ephemeral(self) -> None:
        """A lifecycle without anything in it is one."""
        added = {"name": "e", "image": "i", "terminationMessagePolicy": "File", "imagePullPolicy": "Always"}
        found = problems(ephemeralContainers=[{**added, "lifecycle": {}, "ports": []}])
        self.assertEqual([one.partition(":")[0] for one in found][:1], ["spec.ephemeralContainers[0].lifecycle"])

    def test_image_volumes(self) -> None:
        """Part of an image is mounted like part of any other volume."""
        mounts = [{"name": "i", "mountPath": "/i", "subPathExpr": "a"}]
        volumes = [{"name": "i", "image": {"reference": "x:1"}}]
        self.assertEqual(problems(containers=[{**CONTAINER, "volumeMounts": mounts}], volumes=volumes), [])

    def test_claims(self) -> None:
        """All of a claim, or some requests of it."""
        claims = [{"name": "a", "request": "one"}, {"name": "a", "request": "one"}, {"name": "a"}, {"name": "a"}]
        found = in_container(resources={"claims": [*claims, {}, {"name": "b", "request": "B"}]})
        lost = "must be one of the names in pod.spec.resourceClaims which is empty"
        self.assertEqual(
            [one for one in found if "RFC" not in one],
            [
                f'resources.claims[0]: Not found: "a": {lost}',
                'resources.claims[1]: Duplicate value: "a/one"',
                f'resources.claims[1]: Not found: "a": {lost}',
                'resources.claims[2]: Duplicate value: "a"',
                f'resources.claims[2]: Not found: "a": {lost}',
                'resources.claims[3]: Duplicate value: "a"',
                f'resources.claims[3]: Not found: "a": {lost}',
                "resources.claims[4]: Required value",
                f'resources.claims[5]: Not found: "b": {lost}',
            ],
        )
        self.assertEqual(len(found), 10)

    def test_unnamed_claims(self) -> None:
        """A claim of the pod without a name is told of, once, and does no harm."""
        container = {**CONTAINER, "resources": {"claims": [{"name": "b"}]}}
        given = {"resourceClaimName": "r"}
        found = problems(containers=[container], resourceClaims=[given, {"name": "a", **given}])
        self.assertEqual(found[0], "spec.resourceClaims[0].name: Required value")
        self.assertTrue(found[1].endswith("pod.spec.resourceClaims: a"), found)

    def test_pages(self) -> None:
        """Whatever is no size of pages does not divide anything."""
        amounts = {"hugepages-odd": "2Mi", "cpu": "1"}
        self.assertEqual(
            in_container(resources={"limits": amounts, "requests": {"cpu": "1"}})[:1],
            [
                'resources.limits[hugepages-odd]: Invalid value: "2Mi": '
                "2Mi is not positive integer multiple of hugepages-odd"
            ],
        )

    def test_names_of_resources(self) -> None:
        """A bad name with a domain is no extended resource either."""
        found = in_container(resources={"limits": {"example.com/a b": "1"}, "requests": {}})
        self.assertIn("doesn't follow extended resource name standard", found[1])


class SecurityTests(SynchronousTestCase):
    """Security contexts, and annotations that came before them."""

    def test_order(self) -> None:
        """Profiles for seccomp come first."""
        found = in_container(
            securityContext={"seccompProfile": {}, "allowPrivilegeEscalation": False, "privileged": True}
        )
        self.assertEqual(
            [one.partition(":")[0] for one in found], ["securityContext.seccompProfile.type", "securityContext"]
        )

    def test_windows(self) -> None:
        """Names of users and of credentials."""

        def with_options(**options: Any) -> list[str]:
            found = problems(securityContext={"windowsOptions": options})
            self.assertEqual(
                in_container(securityContext={"windowsOptions": options}),
                [one.removeprefix("spec.") for one in found],
            )
            return [one.removeprefix("spec.securityContext.windowsOptions.") for one in found]

        for name in ("user", "NET\\user", "a.example.com\\user"):
            self.assertEqual(with_options(runAsUserName=name), [])
        for name, wrong in (
            ("", " cannot be an empty string"),
            ("a\x07", " cannot contain control characters"),
            ("a\\b\\c", " cannot contain more than one backslash"),
            ("*\\b", "'s Domain doesn't match the NetBios nor the DNS format"),
            ("a\\", "'s User cannot be empty"),
            ("a" * 105, "'s User length must not be longer than 104 characters"),
            (". .", "'s User cannot contain only periods or spaces"),
            ("a*", "'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"),
        ):
            self.assertEqual(
                [one.rpartition(": runAsUserName")[2] for one in with_options(runAsUserName=name)], [wrong]
            )
        self.assertEqual(
            [one.partition(":")[0] for one in with_options(gmsaCredentialSpecName="A", gmsaCredentialSpec="")],
            ["gmsaCredentialSpecName", "gmsaCredentialSpec"],
        )
        self.assertEqual(
            with_options(gmsaCredentialSpec="a" * 65537)[0].rpartition(": ")[2],
            "gmsaCredentialSpec size must be under 64 KiB",
        )

    def test_selinux_changes(self) -> None:
        """Labels are written to files, unless they were not before."""
        mounted = {"seLinuxChangePolicy": "MountOption"}
        self.assertEqual(
            problems(securityContext=mounted),
            [
                'spec.securityContext.seLinuxChangePolicy: Unsupported value: "MountOption": '
                'supported values: "Recursive"'
            ],
        )
        before = pod(securityContext=mounted)
        self.assertEqual(strategy_for("", "Pod").validate_update(before, before), [])

    def test_seccomp_annotations(self) -> None:
        """Annotations of old name profiles, and say what the fields say."""
        self.assertEqual(
            problems({SECCOMP_C: "localhost/../a", SECCOMP: "odd"}),
            [
                f'metadata.annotations.{SECCOMP}: Invalid value: "odd": must be a valid seccomp profile',
                f"metadata.annotations.{SECCOMP_C}: Invalid value: \"../a\": must not contain '..'",
            ],
        )
        local = {"type": "Localhost", "localhostProfile": "a"}
        spec = {
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{**CONTAINER, "securityContext": {"seccompProfile": local}}],
        }
        self.assertEqual(problems({SECCOMP: "docker/default", SECCOMP_C: "localhost/a"}, **spec), [])
        text = "Forbidden: seccomp {} in annotation and field must match"
        self.assertEqual(
            problems({SECCOMP: "unconfined", SECCOMP_C: "localhost/b"}, **spec),
            [
                f"spec.securityContext.seccompProfile.type: {text.format('type')}",
                f"spec.containers[0].securityContext.seccompProfile.localhostProfile: {text.format('profile')}",
            ],
        )

    def test_app_armor_annotations(self) -> None:
        """The same for AppArmor, where the field of the whole pod counts too."""
        spec = {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}
        self.assertEqual(problems({APP_ARMOR_C: "unconfined"}, **spec), [])
        own = [{**CONTAINER, "securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}}}]
        self.assertEqual(
            problems({APP_ARMOR_C: "unconfined"}, containers=own),
            [
                "spec.containers[0].securityContext.appArmorProfile.type: "
                "Forbidden: apparmor type in annotation and field must match"
            ],
        )

    def test_host_process(self) -> None:
        """Containers in the host's place are privileged."""
        obj = pod(hostNetwork=True, securityContext={"windowsOptions": {"hostProcess": True}})
        self.assertEqual(
            [str(one) for one in unprivileged(strategy_for("", "Pod").validate, obj)],
            ["spec: Forbidden: hostProcess containers are disallowed by cluster policy"],
        )

    def test_windows_pods(self) -> None:
        """What is said not to be shared is said; what is empty is not."""
        found = problems(os={"name": "windows"}, shareProcessNamespace=False, securityContext={"sysctls": []})
        self.assertEqual(found, ["spec.shareProcessNamespace: Forbidden: cannot be set for a windows pod"])
        self.assertEqual(problems(os={}), ["spec.os.name: Required value"])

    def test_own_users(self) -> None:
        """Devices have no users of a pod's own."""
        container = {**CONTAINER, "volumeDevices": [{"name": "p", "devicePath": "/d"}]}
        spec: dict[str, Any] = {"hostUsers": False, "containers": [container], "volumes": VOLUMES}
        self.assertEqual(problems(**spec), ["spec.containers[0].volumeDevices: Forbidden: when `hostUsers` is false"])
        self.assertEqual(strategy_for("", "Pod").validate_update(pod(**spec), pod(**spec)), [])


class VolumeTests(SynchronousTestCase):
    """Volumes, of sources that are rare."""

    def test_claims_to_be_made(self) -> None:
        """A claim that is made for the pod is not one to be referred to."""
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}
        volumes = [
            {"name": "a", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}},
            {"name": "b", "persistentVolumeClaim": {"claimName": "x-a"}},
        ]
        self.assertEqual(
            problems(volumes=volumes),
            [
                'spec.volumes[1].persistentVolumeClaim.claimName: Invalid value: "x-a": '
                "must not reference a PVC that gets created for an ephemeral volume"
            ],
        )
        metadata = {"name": "n", "labels": {"a b": ""}, "annotations": {"c d": ""}}
        volumes[0]["ephemeral"] = {"volumeClaimTemplate": {"metadata": metadata, "spec": spec}}
        found = problems(volumes=volumes[:1])
        self.assertEqual(
            [one.partition(": ")[0].rpartition("metadata.")[2] for one in found], ["annotations", "labels", "name"]
        )
        self.assertTrue(found[2].endswith("Forbidden: cannot be set"))

    def test_paths(self) -> None:
        """Some paths are spelled in a way of their own."""
        self.assertEqual(in_volume(gcePersistentDisk={}), ["persistentDisk.pdName: Required value"])
        found = in_volume(emptyDir={}, cephfs={"monitors": ["a"]}, downwardAPI={})
        self.assertEqual([one.partition(":")[0] for one in found], ["cephFS", "downwarAPI"])

    def test_projected(self) -> None:
        """No two files have the same path, and each source is of one kind, which is told of once."""
        item = [{"key": "k", "path": "p"}]
        sources = [
            {"secret": {"name": "s", "items": item}, "configMap": {"name": "m", "items": item}},
            {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            {"serviceAccountToken": {"path": "p"}},
            {"serviceAccountToken": {"path": "/q", "expirationSeconds": 0}},
        ]
        self.assertEqual(
            in_volume(projected={"sources": sources}),
            [
                'projected: Invalid value: "m": conflicting duplicate paths',
                "projected.sources[0]: Forbidden: may not specify more than 1 volume type per source",
                'projected: Invalid value: "p": conflicting duplicate paths',
                "projected.sources[3].serviceAccountToken.expirationSeconds: Invalid value: 0: "
                "may not specify a duration less than 10 minutes",
                'projected.path: Invalid value: "/q": must be a relative path',
            ],
        )

    def test_pod_certificates(self) -> None:
        """Certificates of a certain kind and age, in files."""

        def with_certificate(**source: Any) -> list[str]:
            found = in_volume(projected={"sources": [{"podCertificate": source}]})
            return [one.removeprefix("projected.sources[0].podCertificate") for one in found]

        good = {"signerName": "example.com/a", "keyType": "ED25519", "keyPath": "k"}
        self.assertEqual(with_certificate(**good), [])
        self.assertEqual(
            with_certificate(),
            [
                ".signerName: Required value",
                '.keyType: Unsupported value: "": supported values: "RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", '
                '"ECDSAP521", "ED25519"',
                ": Required value: specify at least one of credentialBundlePath, keyPath, and certificateChainPath",
            ],
        )
        for seconds, signer, limit in (
            (3599, "example.com/a", ">= 3600"),
            (7862401, "example.com/a", "<= 7862400"),
            (86401, "kubernetes.io/a", "<= 86400"),
        ):
            self.assertEqual(
                with_certificate(**{**good, "signerName": signer, "maxExpirationSeconds": seconds}),
                [f".maxExpirationSeconds: Invalid value: {seconds}: if provided, maxExpirationSeconds must be {limit}"],
            )
        self.assertEqual(
            in_volume(projected={"sources": [{"podCertificate": {**good, "certificateChainPath": "k"}}]}),
            ['projected: Invalid value: "k": conflicting duplicate paths'],
        )

    def test_rare_sources(self) -> None:
        """What each of them needs."""
        long = "a" * 65
        for source, wrong in (
            ({"nfs": {"server": "s"}}, ["nfs.path", "nfs.path"]),
            (
                {"iscsi": {"targetPortal": "p", "iqn": "iqn.odd", "chapAuthSession": True}},
                ["iscsi.iqn", "iscsi.secretRef"],
            ),
            (
                {"iscsi": {"targetPortal": long, "iqn": "iqn.2001-04.com.example:d", "initiatorName": "odd"}},
                ["iscsi.initiatorname", "name"],
            ),
            ({"fc": {"targetWWNs": ["a"], "wwids": ["b"], "lun": 1}}, ["fc.targetWWNs"]),
            ({"quobyte": {"registry": "a,b:1,c", "volume": "v"}}, ["quobyte.registry", "quobyte.registry"]),
            ({"quobyte": {"registry": "[::1]:1", "volume": "v", "tenant": long}}, ["quobyte.tenant"]),
            ({"flocker": {}}, ["flocker"]),
            ({"flocker": {"datasetName": "a/b", "datasetUUID": "u"}}, ["flocker", "flocker.datasetName"]),
            ({"cinder": {"volumeID": "i", "secretRef": {}}}, ["cinder.secretRef.name"]),
            (
                {"storageos": {"volumeName": "A", "volumeNamespace": "B", "secretRef": {}}},
                ["storageos.volumeName", "storageos.volumeNamespace", "storageos.secretRef.name"],
            ),
            (
                {"flexVolume": {"driver": "d", "options": {"a.K8s.io/b": "", "kubernetes.io": "", "c": ""}}},
                ["flexVolume.options[a.K8s.io/b]", "flexVolume.options[kubernetes.io]"],
            ),
            ({"azureDisk": {"diskName": "d"}}, ["azureDisk.diskURI", "azureDisk.diskURI"]),
            ({"azureDisk": {"diskName": "d", "diskURI": "https:x"}}, ["azureDisk.diskURI"]),
        ):
            self.assertEqual([one.partition(": ")[0] for one in in_volume(**source)], wrong)


class SpecTests(SynchronousTestCase):
    """The rest of the spec."""

    def test_hostnames(self) -> None:
        """A name instead of that of the pod is the name as a whole."""
        self.assertEqual(problems(hostnameOverride="a.b"), [])
        found = problems(hostnameOverride="A" * 65, hostNetwork=True, setHostnameAsFQDN=True)
        self.assertEqual(
            found[:3],
            [
                "spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true",
                "spec.hostnameOverride: Forbidden: may not be specified when hostNetwork is true",
                "spec.hostnameOverride: Too long: may not be more than 64 bytes",
            ],
        )
        self.assertIn("RFC 1123 subdomain", found[3])

    def test_overhead(self) -> None:
        """Overhead is looked at as if it were limits."""
        self.assertEqual(
            problems(overhead={"hugepages-2Mi": "2Mi", "cpu": "-1"}),
            ['spec.overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
        )

    def test_tolerations(self) -> None:
        """Comparisons are known of, but not there yet."""
        self.assertEqual(
            problems(tolerations=[{"key": "k", "operator": "Gt", "value": "1"}]),
            ['spec.tolerations[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists", "Lt", "Gt"'],
        )

    def test_label_keys(self) -> None:
        """A label that is compared with the pod's own is not selected by in another way."""
        for key, place, topology in (
            ("topologySpreadConstraints", "spec.topologySpreadConstraints[0]", {"whenUnsatisfiable": "DoNotSchedule"}),
            ("affinity", "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]", {}),
        ):
            term: dict[str, Any] = {"topologyKey": "t", "matchLabelKeys": ["a"], **topology}
            if topology:
                term["maxSkew"] = 1

            def found(name: str = key, **more: Any) -> list[str]:
                part = {**term, **more}  # noqa: B023
                required = {"requiredDuringSchedulingIgnoredDuringExecution": [part]}
                value: Any = [part] if name != "affinity" else {"podAffinity": required}
                obj = {"metadata": {**METADATA, "labels": {"a": "1"}}, "spec": {"containers": [CONTAINER], name: value}}
                obj = orjson.loads(orjson.dumps(obj))
                strategy_for("", "Pod").default(obj)
                strategy_for("", "Pod").prepare_for_create(obj)
                return [str(cause) for cause in strategy_for("", "Pod").validate(obj)]

            self.assertEqual(found(labelSelector={"matchLabels": {"b": "1"}}), [])
            self.assertEqual(
                found(labelSelector={"matchLabels": {"a": "1"}}),
                [f'{place}[0]: Invalid value: "a": exists in both matchLabelKeys and labelSelector'],
            )
            self.assertEqual(
                found(matchLabelKeys=["a b"]),
                [f"{place}.matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"],
            )

    def test_domains(self) -> None:
        """Everything wrong with a number of domains is told."""
        constraint = {"maxSkew": 1, "topologyKey": "t", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 0}
        self.assertEqual(len(problems(topologySpreadConstraints=[{**constraint, "labelSelector": {}}])), 2)

    def test_static_pods(self) -> None:
        """What a kubelet made has no claims of devices."""
        claims = [{"name": "a", "resourceClaimName": "r"}, {"name": "A"}]
        found = problems({MIRROR: "1"}, nodeName="n", resourceClaims=claims)
        self.assertEqual(found, [": Forbidden: static pods do not support resource claims"] * 2)

    def test_whole_resources(self) -> None:
        """A pod asks for as much as its containers do at the time when they ask for most."""

        def asking(name: str, amount: str, **more: Any) -> dict[str, Any]:
            return {"name": name, "image": "i", "resources": {"requests": {"cpu": amount}}, **more}

        starting = [
            asking("a", "2", restartPolicy="Always"),
            asking("b", "5"),
            asking("d", "1", restartPolicy="Always"),
        ]
        spec: dict[str, Any] = {"initContainers": starting, "containers": [asking("c", "3")]}
        self.assertEqual(problems(**spec, resources={"requests": {"cpu": "7"}}), [])
        self.assertEqual(
            problems(**spec, resources={"requests": {"cpu": "6"}}),
            [
                'spec.resources.requests[cpu]: Invalid value: "6": '
                "must be greater than or equal to aggregate container requests of 7"
            ],
        )
        self.assertEqual(problems(**spec, resources={"requests": {"memory": "1"}}), [])
        self.assertEqual(
            problems(resources={"claims": [], "requests": {"cpu": "1"}}),
            ["spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level"],
        )
        self.assertIn(
            'spec.resources.requests[storage]: Unsupported value: "storage": '
            'supported values: "cpu", "hugepages-", "memory"',
            problems(resources={"requests": {"storage": "1"}}),
        )
        self.assertEqual(
            problems(os={"name": "windows"}, resources={"requests": {"odd": "1"}}),
            ["spec.resources: Forbidden: may not be set for a windows pod"],
        )
        pages = {"limits": {"hugepages-2Mi": "4Mi", "cpu": "1"}, "requests": {"hugepages-2Mi": "4Mi", "cpu": "1"}}
        whole = {"limits": {"hugepages-2Mi": "2Mi", "cpu": "1"}, "requests": {"hugepages-2Mi": "2Mi", "cpu": "1"}}
        self.assertIn(
            'spec.resources.limits[hugepages-2Mi]: Invalid value: "2Mi": '
            "must be greater than or equal to aggregate container limits of 4Mi",
            problems(containers=[{**CONTAINER, "resources": pages}], resources=whole),
        )


class ChangeTests(SynchronousTestCase):
    """Changes of pods."""

    def changed(self, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
        """What is wrong with a change."""
        return [str(cause) for cause in strategy_for("", "Pod").validate_update(new, old)]

    def test_annotations(self) -> None:
        """Those for the kubelet stay."""
        plain, marked = pod(nodeName="n"), pod({MIRROR: "1", APP_ARMOR_C: "unconfined"}, nodeName="n")
        marked["spec"] = plain["spec"]
        here = "metadata.annotations"
        self.assertEqual(
            self.changed(plain, marked),
            [
                f"{here}[{APP_ARMOR_C}]: Forbidden: may not add AppArmor annotations",
                f"{here}[{MIRROR}]: Forbidden: may not add mirror pod annotation",
            ],
        )
        self.assertEqual(
            self.changed(marked, plain),
            [
                f"{here}[{APP_ARMOR_C}]: Forbidden: may not remove or update AppArmor annotations",
                f"{here}[{MIRROR}]: Forbidden: may not remove or update mirror pod annotation",
            ],
        )
        self.assertEqual(self.changed(marked, marked), [])
        self.assertEqual(len(validate_pod_status_update(plain, marked)), 2)

    def test_tolerations(self) -> None:
        """Those that are there stay, for however long."""
        old = [{"key": "a", "effect": "NoExecute", "tolerationSeconds": 1}]
        new = [{"key": "b"}, {"key": "a", "effect": "NoExecute", "value": ""}]
        self.assertEqual(self.changed(pod(tolerations=old), pod(tolerations=new)), [])

    def test_gated(self) -> None:
        """A pod at a gate may be sent to fewer nodes, not to others."""
        gates = {"schedulingGates": [{"name": "g"}]}

        def to(terms: Any) -> dict[str, Any]:
            required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
            return pod(affinity={"nodeAffinity": required if terms else {}}, **gates)

        some = [{"matchExpressions": [{"key": "k", "operator": "Exists"}]}]
        path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        self.assertEqual(
            self.changed(to(some), to(None)),
            [f"{path}: Invalid value: null: no additions/deletions to non-empty NodeSelectorTerms list are allowed"],
        )
        found = self.changed(to([{}]), to(some))
        self.assertEqual([one.partition(":")[0] for one in found], [f"{path}[0]"])

    def test_dropped_fields(self) -> None:
        """How to stop a container is behind a gate."""
        stopping = [{**CONTAINER, "lifecycle": {"stopSignal": "SIGINT"}}]
        obj = pod(os={"name": "linux"}, containers=stopping)
        self.assertNotIn("lifecycle", obj["spec"]["containers"][0])
        changed = pod(os={"name": "linux"})
        changed["spec"]["containers"][0]["lifecycle"] = {"stopSignal": "SIGINT", "preStop": {"sleep": {"seconds": 1}}}
        PodStrategy().prepare_for_update(changed, obj)
        self.assertEqual(changed["spec"]["containers"][0]["lifecycle"], {"preStop": {"sleep": {"seconds": 1}}})
        before = orjson.loads(orjson.dumps(changed))
        before["spec"]["containers"][0]["lifecycle"]["stopSignal"] = "SIGINT"
        after = orjson.loads(orjson.dumps(before))
        PodStrategy().prepare_for_update(after, before)
        self.assertEqual(after["spec"], before["spec"])


class ResizeTests(SynchronousTestCase):
    """More or less of the same."""

    def resized(self, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
        """What is wrong with a change of resources."""
        PodStrategy().prepare_for_resize(new, old)
        return [str(cause) for cause in validate_resize(new, old)]

    def sized(self, name: str = "c", cpu: str = "1", **more: Any) -> dict[str, Any]:
        """A container that asks for something."""
        return {"name": name, "image": "i", "resources": {"requests": {"cpu": cpu, **more}}}

    def test_who(self) -> None:
        """Pods of the kubelet's own and those of Windows do not change."""
        self.assertEqual(
            self.resized(pod({MIRROR: "1"}, nodeName="n"), pod()), [": Forbidden: static pods cannot be resized"]
        )
        self.assertEqual(
            self.resized(pod(os={"name": "windows"}), pod()), [": Forbidden: windows pods cannot be resized"]
        )
        running = {"qosClass": "Burstable", "containerStatuses": [{"name": "c", "state": {"running": {}}}]}
        old = pod(containers=[self.sized()], status=running)
        self.assertEqual(
            self.resized(old, pod(containers=[self.sized(cpu="2")])),
            ["spec: Forbidden: Pod running on node without support for resize"],
        )
        running["containerStatuses"][0]["resources"] = {}  # type: ignore[index]
        self.assertEqual(self.resized(old, pod(containers=[self.sized(cpu="2")])), [])

    def test_order(self) -> None:
        """Containers stay where they are."""
        old = pod(containers=[self.sized("a"), self.sized("b")])
        text = "containers may not be renamed or reordered on resize"
        self.assertEqual(
            self.resized(old, pod(containers=[self.sized("b"), self.sized("a")])),
            [f"spec.containers[{index}].name: Forbidden: {text}" for index in range(2)],
        )
        found = self.resized(old, pod(containers=[self.sized("a"), self.sized("b")], initContainers=[self.sized("i")]))
        self.assertEqual(
            found, ["spec.initContainers: Forbidden: initContainers may not be added or removed on resize"]
        )

    def test_amounts(self) -> None:
        """Nothing is removed, and only some things change, in containers that start a pod too."""
        old = pod(containers=[self.sized()], initContainers=[self.sized("i", memory="1")])
        new = pod(containers=[self.sized("c", "2")], initContainers=[self.sized("i", "2", memory="2")])
        self.assertEqual(self.resized(old, new), [])
        new = pod(containers=[self.sized(**{"ephemeral-storage": "1"})], initContainers=[self.sized("i")])
        self.assertEqual(
            self.resized(old, new),
            [
                "spec.initContainers[0].resources.requests: Forbidden: resource requests cannot be removed",
                "spec: Forbidden: only cpu and memory resources are mutable",
            ],
        )
        policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
        starting = {**self.sized("i"), "resizePolicy": policy}
        found = self.resized(
            pod(containers=[self.sized()], initContainers=[starting]),
            pod(containers=[self.sized()], initContainers=[{**starting, "resources": {"requests": {"cpu": "2"}}}]),
        )
        self.assertEqual(
            found,
            [
                "spec.initContainers[0]: Forbidden: "
                "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
            ],
        )

    def test_whole(self) -> None:
        """Resources of the pod do not go away."""
        whole = {"requests": {"cpu": "2", "hugepages-2Mi": "2Mi"}, "limits": {"hugepages-2Mi": "2Mi"}}
        old = pod(containers=[self.sized()], resources=whole)
        self.assertIn(
            "spec.resources: Forbidden: pod-level resources cannot be removed",
            self.resized(old, pod(containers=[self.sized()])),
        )
        less = {"requests": {"cpu": "2"}}
        self.assertEqual(
            self.resized(old, pod(containers=[self.sized()], resources=less)),
            [
                "spec.resources.requests: Forbidden: pod-level resource requests cannot be removed",
                "spec.resources.limits: Forbidden: pod-level resource limits cannot be removed",
                "spec: Forbidden: only cpu and memory resources are mutable at pod-level",
            ],
        )
        more = {**whole, "requests": {"cpu": "3", "hugepages-2Mi": "2Mi"}}
        self.assertEqual(self.resized(old, pod(containers=[self.sized()], resources=more)), [])


class StatusTests(SynchronousTestCase):
    """What kubelets report."""

    def reported(self, status: Any, before: Any = None, **spec: Any) -> list[str]:
        """What is wrong with a change of the status."""
        found = validate_pod_status_update(pod(status=status, **spec), pod(status=before or {}, **spec))
        return [str(cause).removeprefix("status.") for cause in found]

    def test_restarts(self) -> None:
        """What has ended is started again when it may be, by its own rules first."""
        rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [3]}}
        all_of_them = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [9]}}
        for policy, parts, code, good in (
            ("Always", {}, 0, True),
            ("OnFailure", {}, 0, False),
            ("OnFailure", {}, 1, True),
            ("Never", {}, 1, False),
            ("Never", {"restartPolicy": "Always"}, 0, True),
            ("Always", {"restartPolicy": "Never"}, 0, False),
            ("Always", {"restartPolicy": "Never", "restartPolicyRules": [rule]}, 3, True),
            ("Always", {"restartPolicy": "Never", "restartPolicyRules": [rule]}, 4, False),
            ("Never", {"restartPolicy": "Never", "restartPolicyRules": [all_of_them]}, 0, True),
        ):
            for field, kind in (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses")):
                before = {kind: [{"name": "s", "state": {"terminated": {"exitCode": code}}}]}
                after = {kind: [{"name": "s", "state": {"running": {}}}]}
                lists = {"containers": [CONTAINER], field: [{**CONTAINER, "name": "s", **parts}]}
                wrong = f"{kind}[0].state: Forbidden: may not be transitioned to non-terminated state"
                found = self.reported(after, before, restartPolicy=policy, **lists)
                self.assertEqual(found, [] if good else [wrong], (policy, parts, code, field))

    def test_nominated(self) -> None:
        """A pod that has its node is not going to another."""
        nominated = {"nominatedNodeName": "m"}
        self.assertEqual(self.reported(nominated), [])
        self.assertEqual(
            self.reported(nominated, nodeName="n"),
            ["nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node"],
        )
        self.assertEqual(self.reported(nominated, nominated, nodeName="n"), [])

    def test_generations(self) -> None:
        """Nobody has seen less than nothing."""
        status = {"observedGeneration": -1, "conditions": [{"type": "Ready", "observedGeneration": -2}]}
        self.assertEqual(
            self.reported(status),
            [
                "conditions[0].observedGeneration: Invalid value: -2: must be a non-negative integer",
                "observedGeneration: Invalid value: -1: must be a non-negative integer",
            ],
        )

    def test_addresses(self) -> None:
        """An address that was there may stay, and two that are the same are two of a family."""
        both = {"podIP": "1.2.3.4", "podIPs": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.4"}]}
        self.assertEqual([one.partition(":")[0] for one in self.reported(both)], ["podIPs"])
        odd = {"podIP": "1.2.3.04", "podIPs": [{"ip": "1.2.3.04"}]}
        self.assertEqual(len(self.reported(odd)), 1)
        self.assertEqual(self.reported(odd, odd), [])

    def test_claims(self) -> None:
        """Claims were made for those of the spec."""
        statuses = [{"name": "a", "resourceClaimName": "r"}, {"name": "a"}, {"name": "b", "resourceClaimName": "R"}]
        found = self.reported(
            {"resourceClaimStatuses": statuses}, resourceClaims=[{"name": "a", "resourceClaimTemplateName": "t"}]
        )
        self.assertEqual(
            [one.partition(": ")[0] for one in found],
            [f"resourceClaimStatuses[{place}" for place in ("1].name", "2].name", "2].resourceClaimName")],
        )

    def test_users(self) -> None:
        """Users of containers are users of Linux."""
        status = {
            "containerStatuses": [{"name": "c", "user": {"linux": {"uid": -1, "gid": 0, "supplementalGroups": [-2]}}}]
        }
        self.assertEqual(
            [one.partition(": ")[0] for one in self.reported(status)],
            ["containerStatuses[0].user.linux.uid", "containerStatuses[0].user.linux.supplementalGroups[0]"],
        )
        self.assertEqual(
            self.reported(status, os={"name": "windows"}),
            ["containerStatuses[0].user.linux: Forbidden: cannot be set for a windows pod"],
        )

    def test_health(self) -> None:
        """The health of devices that the container has."""
        device = {"resourceID": "1", "health": "Healthy"}
        allocated = [
            {"name": "claim:a/r", "resources": [device, device]},
            {"name": "claim:b", "resources": [{"resourceID": "2", "health": "Ill"}]},
            {"name": "example.com/d"},
        ]
        container = {**CONTAINER, "resources": {"claims": [{"name": "a", "request": "r"}]}}
        status = {
            "containerStatuses": [{"name": "c", "allocatedResourcesStatus": allocated}],
            "ephemeralContainerStatuses": [{"name": "e", "allocatedResourcesStatus": allocated}],
        }
        here = "containerStatuses[0].allocatedResourcesStatus"
        self.assertEqual(
            [one.partition(": ")[0] for one in self.reported(status, containers=[container])],
            [
                f"{here}[0].resources[1].resourceID",
                f"{here}[1].name",
                f"{here}[1].resources[0].health",
                f"{here}[2].name",
                "ephemeralContainerStatuses[0].allocatedResourcesStatus",
            ],
        )
