"""Tests for the rules of new pods that few pods break, through the strategy of pods."""

from __future__ import annotations

from typing import Any

import orjson

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.privileges import unprivileged
from kubetwist.registry.strategies import strategy_for

from ....pods import (
    APP_ARMOR_C,
    CONTAINER,
    METADATA,
    MIRROR,
    SECCOMP,
    SECCOMP_C,
    VOLUMES,
    in_container,
    in_volume,
    pod,
    problems,
)


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
        """Certificates of a certain kind and age, in files, where the gate is open."""

        def in_volume(**source: Any) -> list[str]:
            strategy = strategy_for("", "Pod").with_gates(["PodCertificateRequest"])
            obj = pod(serviceAccountName="a")
            obj["spec"]["volumes"] = [{"name": "v", **source}]
            strategy.default(obj)
            strategy.prepare_for_create(obj)
            return [str(one).removeprefix("spec.volumes[0].") for one in strategy.validate(obj)]

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

            def found(name: str = key, term: dict[str, Any] = term, **more: Any) -> list[str]:
                part = {**term, **more}
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

    def test_amounts_of_pods(self) -> None:
        """Huge pages and requests of a whole pod come of its containers, one after another and those that go on."""

        def asking(amount: str, **more: Any) -> dict[str, Any]:
            limits = {"cpu": amount, "hugepages-2Mi": "2Mi"}
            return {**CONTAINER, **more, "resources": {"limits": limits}}

        starting = [asking("1", name="i", restartPolicy="Always"), asking("4", name="j")]
        spec = pod(resources={"limits": {"memory": "1Gi"}}, containers=[asking("2")], initContainers=starting)["spec"]
        self.assertEqual(
            spec["resources"],
            {
                "limits": {"memory": "1Gi", "hugepages-2Mi": "4Mi"},
                "requests": {"cpu": "5", "memory": "1Gi", "hugepages-2Mi": "4Mi"},
            },
        )

    def test_search_domains(self) -> None:
        """Resolvers search in domains with underscores, too."""
        self.assertEqual(problems(dnsConfig={"searches": ["_a_b.c", ".", "a."]}), [])
        (found,) = problems(dnsConfig={"searches": ["A"]})
        self.assertTrue(
            found.startswith(
                'spec.dnsConfig.searches[0]: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower '
                "case alphanumeric characters, '_', '-' or '.', and must start and end"
            ),
            found,
        )
        self.assertIn("'_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?", found)

    def test_told_quality(self) -> None:
        """Whoever tells the quality of service of a new pod is believed."""
        obj = {"metadata": METADATA, "spec": {"containers": [CONTAINER]}, "status": {"qosClass": "Odd"}}
        strategy_for("", "Pod").default(obj)
        strategy_for("", "Pod").prepare_for_create(obj)
        self.assertEqual(obj["status"], {"phase": "Pending", "qosClass": "Odd"})

    def test_grace(self) -> None:
        """A pod that would end before it began ends after a second."""
        self.assertEqual(pod(terminationGracePeriodSeconds=-5)["spec"]["terminationGracePeriodSeconds"], 1)

    def test_pull_policies(self) -> None:
        """The newest of its name is always pulled; what is no image is not."""
        for image, wanted in (
            ("app", "Always"),
            ("host:5000/a/b__c", "Always"),
            ("app:latest", "Always"),
            ("app:1", "IfNotPresent"),
            (f"app@sha256:{'a' * 64}", "IfNotPresent"),
            (f"app:latest@sha256:{'a' * 64}", "Always"),
            ("App", "IfNotPresent"),
            ("Host/app", "Always"),
            ("10%", "IfNotPresent"),
            ("x" * 247, "Always"),
            ("x" * 248, "IfNotPresent"),
            (f"a.example/{'x' * 255}", "Always"),
            (f"a.example/{'x' * 256}", "IfNotPresent"),
            ("a" * 64, "IfNotPresent"),
            ("a//b", "IfNotPresent"),
            ("a:b:c", "IfNotPresent"),
        ):
            made = pod(containers=[{"name": "c", "image": image}])["spec"]["containers"][0]
            self.assertEqual(made["imagePullPolicy"], wanted, image)

    def test_static_pods(self) -> None:
        """What a kubelet made has no claims of devices."""
        claims = [{"name": "a", "resourceClaimName": "r"}, {"name": "A"}]
        found = problems({MIRROR: "1"}, nodeName="n", resourceClaims=claims)
        self.assertEqual(found, ["[]: Forbidden: static pods do not support resource claims"] * 2)

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
