"""Tests for L{ServiceAccount}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission_plugins.serviceaccount import MOUNT_PATH, ServiceAccount
from kubetwist.api.errors import APIStatusError
from kubetwist.api.resource import JSONObject
from tests.admission_plugins.fakes import Context, PluginTestCase, every_container, pod, write
from tests.admission_plugins.objects import ACCOUNT, Objects, attributes, call_plugin


class ServiceAccountTests(SynchronousTestCase):
    """Tests for L{ServiceAccount}."""

    def admit(self, obj: JSONObject, **account: Any) -> JSONObject:
        """Admit a pod on a server with one account."""
        context = Objects(serviceaccounts_default={**ACCOUNT, **account})
        self.successResultOf(call_plugin(ServiceAccount().admit, attributes(obj, context=context)))
        spec: JSONObject = obj["spec"]
        return spec

    def test_default(self) -> None:
        """A pod without an account gets the default one of the namespace, and a volume with its token."""
        spec = self.admit(pod())
        self.assertEqual((spec["serviceAccountName"], spec["serviceAccount"]), ("default", "default"))
        volume = spec["volumes"][0]
        self.assertTrue(volume["name"].startswith("kube-api-access-"))
        self.assertEqual(
            spec["containers"][0]["volumeMounts"],
            [{"name": volume["name"], "readOnly": True, "mountPath": MOUNT_PATH}],
        )
        kinds = [next(iter(source)) for source in volume["projected"]["sources"]]
        self.assertEqual(kinds, ["serviceAccountToken", "configMap", "downwardAPI"])

    def test_no_token(self) -> None:
        """The pod, or else its account, can disable the token volume."""
        self.assertNotIn("volumes", self.admit(pod(automountServiceAccountToken=False)))
        self.assertNotIn("volumes", self.admit(pod(), automountServiceAccountToken=False))
        wanting = pod(automountServiceAccountToken=True)
        self.assertIn("volumes", self.admit(wanting, automountServiceAccountToken=False))

    def test_existing_mount(self) -> None:
        """A container that mounts another volume at the path keeps it."""
        mount = {"name": "mine", "mountPath": MOUNT_PATH}
        spec = self.admit(pod(containers=[{"name": "c", "volumeMounts": [mount]}], volumes=[{"name": "mine"}]))
        self.assertEqual(spec["containers"][0]["volumeMounts"], [mount])
        self.assertEqual(spec["volumes"], [{"name": "mine"}])

    def test_pull_secrets(self) -> None:
        """A pod without imagePullSecrets gets the imagePullSecrets of the account."""
        secrets = [{"name": "reg"}]
        self.assertEqual(self.admit(pod(), imagePullSecrets=secrets)["imagePullSecrets"], secrets)
        existing = self.admit(pod(imagePullSecrets=[{"name": "mine"}]), imagePullSecrets=secrets)
        self.assertEqual(existing["imagePullSecrets"], [{"name": "mine"}])

    def test_missing(self) -> None:
        """A pod whose account does not exist is rejected."""
        failure = self.failureResultOf(
            call_plugin(ServiceAccount().admit, attributes(pod(serviceAccountName="ghost"))), APIStatusError
        )
        self.assertEqual(
            (failure.value.code, failure.value.message),
            (
                403,
                'pods "x" is forbidden: error looking up service account ns/ghost: serviceaccount "ghost" not found',
            ),
        )

    def test_mirror_pod(self) -> None:
        """A mirror pod has no account."""
        obj = pod(serviceAccountName="default")
        obj["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
        failure = self.failureResultOf(call_plugin(ServiceAccount().admit, attributes(obj)), APIStatusError)
        self.assertIn("a mirror pod may not reference service accounts", failure.value.message)

    def test_enforced_secrets(self) -> None:
        """An account can restrict its pods to the Secrets that it lists, in volumes, variables and envFrom."""
        account = {
            "metadata": {"name": "default", "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}},
            "secrets": [{"name": "ok"}],
        }
        for spec in (
            {"volumes": [{"name": "v", "secret": {"secretName": "other"}}]},
            {"containers": [{"name": "c", "envFrom": [{"secretRef": {"name": "other"}}]}]},
            {"containers": [{"name": "c", "env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "other"}}}]}]},
            {"imagePullSecrets": [{"name": "other"}]},
        ):
            context = Objects(serviceaccounts_default=account)
            admitted = call_plugin(ServiceAccount().admit, attributes(pod(**spec), context=context))
            failure = self.failureResultOf(admitted, APIStatusError)
            self.assertIn("is not allowed because service account default does not reference", failure.value.message)


ENFORCED = "kubernetes.io/enforce-mountable-secrets"


class SecretTests(PluginTestCase):
    """Tests of accounts that enforce mountable secrets."""

    def context(self, enforced: str = "true") -> Context:
        """Return a server with such an account."""
        context = Context()
        meta = {"name": "default", "namespace": "ns", "annotations": {ENFORCED: enforced}}
        context.add("", "serviceaccounts", {"metadata": meta, "secrets": [{"name": "ok"}]})
        return context

    def test_cve_2023_2728(self) -> None:
        """Ephemeral containers cannot refer to other Secrets."""
        old = pod(serviceAccountName="default")
        for field, what in (
            ({"env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "no"}}}]}, "with envVar X"),
            ({"envFrom": [{"secretRef": {"name": "no"}}]}, "with envFrom"),
        ):
            new = pod(serviceAccountName="default", ephemeralContainers=[{"name": "e", **field}])
            request = write(new, "pods/ephemeralcontainers", "UPDATE", old=old, context=self.context())
            error = self.rejection(ServiceAccount(), request)
            text = (
                f'ephemeral container e {what} referencing secret.secretName="no" is not allowed because service '
                "account default does not reference that secret"
            )
            # The reference has an error without a reason here, other than for a new pod.
            self.assertEqual((error.code, error.reason, error.message), (500, "", text))
        fine = {"name": "e", "envFrom": [{"secretRef": {"name": "ok"}}]}
        new = pod(serviceAccountName="default", ephemeralContainers=[fine])
        self.validate(
            ServiceAccount(), write(new, "pods/ephemeralcontainers", "UPDATE", old=old, context=self.context())
        )

    def test_cve_2024_3177(self) -> None:
        """envFrom of a Secret is checked in containers of every kind."""
        for kind, name in (("initContainers", "init container"), ("containers", "container")):
            obj = every_container()
            obj["spec"]["serviceAccountName"] = "default"
            obj["spec"][kind][0]["envFrom"] = [{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "no"}}]
            expected = self.error_text(ServiceAccount(), write(obj, context=self.context()))
            self.assertEqual(
                expected,
                f'{name} {obj["spec"][kind][0]["name"]} with envFrom referencing secret.secretName="no" is not allowed '
                "because service account default does not reference that secret",
            )

    def test_changed_later(self) -> None:
        """Secrets that another plugin adds later are rejected in the validating phase."""
        obj = pod(serviceAccountName="default")
        request = write(obj, context=self.context())
        self.admit(ServiceAccount(), request)
        obj["spec"]["volumes"].append({"name": "v", "secret": {"secretName": "no"}})
        self.assertIn('volume with secret.secretName="no"', self.error_text(ServiceAccount(), request))
        obj["spec"]["serviceAccountName"] = ""
        self.assertEqual(self.error_text(ServiceAccount(), request), "no service account specified for pod ns/x")

    def test_annotation_values(self) -> None:
        """The annotation is parsed like Go's strconv.ParseBool."""
        obj = pod(serviceAccountName="default", volumes=[{"name": "v", "secret": {"secretName": "no"}}])
        for text in ("1", "t", "T", "TRUE", "true", "True"):
            self.error_text(ServiceAccount(), write(obj, context=self.context(text)))
        for text in ("", "yes", "tRUE", "0", "false"):
            self.validate(ServiceAccount(), write(obj, context=self.context(text)))

    def test_mirrors(self) -> None:
        """Mirror pods cannot refer to Secrets in any field."""
        for spec in (
            {"imagePullSecrets": [{"name": "s"}]},
            {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]},
            {"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "s"}}]}}]},
            {"volumes": [{"name": "v", "csi": {"nodePublishSecretRef": {"name": "s"}}}]},
            {"ephemeralContainers": [{"name": "e", "envFrom": [{"secretRef": {"name": "s"}}]}]},
        ):
            obj = pod(**spec)
            obj["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
            for admitting in (True, False):
                expected = self.error_text(ServiceAccount(), write(obj), admitting=admitting)
                self.assertEqual(expected, "a mirror pod may not reference secrets")
