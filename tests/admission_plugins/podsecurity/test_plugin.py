"""Tests for L{kubetwist.admission_plugins.podsecurity.plugin}."""

from __future__ import annotations

from kubetwist.admission_plugins.podsecurity.evaluation import (
    IGNORED_POD_SUBRESOURCES,
    is_significant_pod_update,
)
from kubetwist.api.podspecs import TEMPLATES
from kubetwist.api.resource import JSONObject, UserInfo
from tests.admission_plugins.fakes import Context, every_container, pod
from tests.admission_plugins.podsecurity.plugintools import NamespaceTestCase, PodSecurityTestCase, labelled

BASELINE = "host namespaces (hostNetwork=true)"


ENFORCED = "pod-security.kubernetes.io/enforce-policy"


VIOLATIONS = "pod-security.kubernetes.io/audit-violations"


EXEMPT = "pod-security.kubernetes.io/exempt"


ERROR = "pod-security.kubernetes.io/error"


class PodTests(PodSecurityTestCase):
    """Tests of pods: rejection, warnings and audit annotations."""

    def test_enforced(self) -> None:
        """A pod that violates the enforce level is rejected, with an audit annotation of the policy."""
        self.labels(enforce="baseline", enforce_version="v1.30")
        request = self.write(pod(hostNetwork=True))
        self.assertEqual(self.error_text(self.plugin(), request), f'violates PodSecurity "baseline:v1.30": {BASELINE}')
        self.assertEqual(request.annotations, {ENFORCED: "baseline:v1.30"})
        self.assertEqual(request.warnings, [])

    def test_warned(self) -> None:
        """A pod that violates only the warn and audit levels is admitted."""
        self.labels(warn="baseline", audit="baseline", audit_version="v1.2")
        request = self.write(pod(hostNetwork=True))
        self.validate(self.plugin(), request)
        self.assertEqual(request.warnings, [f'would violate PodSecurity "baseline:latest": {BASELINE}'])
        self.assertEqual(
            request.annotations,
            {ENFORCED: "privileged:latest", VIOLATIONS: f'would violate PodSecurity "baseline:v1.2": {BASELINE}'},
        )

    def test_no_labels(self) -> None:
        """Without labels all pods are admitted."""
        self.labels()
        request = self.write(pod(hostNetwork=True))
        self.validate(self.plugin(), request)
        self.assertEqual((request.warnings, request.annotations), ([], {ENFORCED: "privileged:latest"}))

    def test_defaults(self) -> None:
        """The configuration has the defaults of namespaces without labels; labels override them."""
        plugin = self.plugin({"defaults": {"enforce": "baseline", "enforce-version": "v1.20", "warn": "restricted"}})
        self.labels()
        self.assertIn('"baseline:v1.20"', self.error_text(plugin, self.write(pod(hostNetwork=True))))
        self.labels(enforce="privileged", warn="privileged")
        self.validate(plugin, self.write(pod(hostNetwork=True)))

    def test_exempt(self) -> None:
        """Users, namespaces and runtime classes can be exempt, with an audit annotation of the reason."""
        self.labels(enforce="restricted")
        for exemptions, expected, obj, user in (
            ({"namespaces": ["ns"]}, "namespace", pod(), "alice"),
            ({"usernames": ["root"]}, "user", pod(), "root"),
            ({"runtimeClasses": ["vm"]}, "runtimeClass", pod(runtimeClassName="vm"), "alice"),
        ):
            plugin = self.plugin({"exemptions": exemptions})
            request = self.write(obj, user=UserInfo(user))
            self.validate(plugin, request)
            self.assertEqual((request.annotations, request.warnings), ({EXEMPT: expected}, []))
        plugin = self.plugin({"exemptions": {"namespaces": ["other"], "usernames": ["b"], "runtimeClasses": ["c"]}})
        self.assertIn("violates PodSecurity", self.error_text(plugin, self.write(pod())))

    def test_updates(self) -> None:
        """An update is evaluated if it changes an image or adds a container of any kind."""
        self.labels(enforce="restricted")
        plugin = self.plugin()
        same = every_container()
        same["metadata"]["labels"] = {"a": "b"}
        self.validate(plugin, self.write(same, operation="UPDATE", old=every_container()))
        for kind in ("initContainers", "containers", "ephemeralContainers"):
            changed = every_container()
            changed["spec"][kind][0]["image"] = "other"
            expected = self.error_text(plugin, self.write(changed, operation="UPDATE", old=every_container()))
            self.assertIn('violates PodSecurity "restricted:latest"', expected)
            fields = every_container()
            fields["spec"][kind].append({"name": "new", "image": "i"})
            self.assertTrue(is_significant_pod_update(fields, every_container()))

    def test_subresources(self) -> None:
        """Ephemeral containers and unknown subresources are evaluated."""
        self.labels(enforce="baseline")
        plugin, old, new = self.plugin(), pod(), pod()
        new["spec"]["ephemeralContainers"] = [{"name": "e", "image": "i", "securityContext": {"privileged": True}}]
        for subresource in ("ephemeralcontainers", "resize", "unheardof"):
            expected = self.error_text(plugin, self.write(new, f"pods/{subresource}", "UPDATE", old=old))
            self.assertIn('privileged (container "e" must not', expected)
        for subresource in sorted(IGNORED_POD_SUBRESOURCES):
            self.validate(plugin, self.write(new, f"pods/{subresource}", "UPDATE", old=old))

    def test_bad_labels(self) -> None:
        """Invalid labels enforce the restricted level, with an audit annotation."""
        self.labels(enforce="strict", warn="often")
        request = self.write(pod())
        self.assertIn('violates PodSecurity "restricted:latest"', self.error_text(self.plugin(), request))
        problem = "must be one of privileged, baseline, restricted"
        path = "metadata.labels[pod-security.kubernetes.io/"
        self.assertEqual(
            request.annotations[ERROR],
            f'Failed to parse policy: [{path}enforce]: Invalid value: "strict": {problem}, '
            f'{path}warn]: Invalid value: "often": {problem}]',
        )
        self.labels(audit_version="1.2")
        request = self.write(pod(hostNetwork=True))
        self.validate(self.plugin(), request)
        self.assertIn('must be "latest" or "v1.x"', request.annotations[ERROR])

    def test_no_namespace(self) -> None:
        """If the namespace of a pod does not exist the request fails with an internal error."""
        error = self.rejection(self.plugin(), self.write(pod()))
        self.assertEqual((error.code, error.message), (500, 'Internal error occurred: failed to lookup namespace "ns"'))

    def test_enforced_is_warned_of(self) -> None:
        """The enforce level is also the warn level of templates, unless the labels set a warn level."""
        for modes, warned in (
            ({"enforce": "baseline", "enforce_version": "v1.9"}, "baseline:v1.9"),
            ({"enforce": "baseline", "warn_version": "v1.7"}, "baseline:v1.7"),
            ({"enforce": "baseline", "warn": "privileged"}, ""),
        ):
            self.context = Context()
            self.labels(**modes)
            request = self.write({"metadata": {}, "spec": {"template": pod(hostNetwork=True)}}, "deployments.apps")
            self.validate(self.plugin(), request)
            wanted = [f'would violate PodSecurity "{warned}": {BASELINE}'] if warned else []
            self.assertEqual(request.warnings, wanted)


class TemplateTests(PodSecurityTestCase):
    """Tests of pod templates, which are never rejected."""

    def test_all_kinds(self) -> None:
        """The templates of all workload kinds cause warnings and audit annotations."""
        self.labels(enforce="restricted", warn="baseline", audit="baseline")
        for (group, resource), way in TEMPLATES.items():
            if not way:
                continue
            obj: JSONObject = pod(hostNetwork=True)
            for field in reversed(way):
                obj = {field: obj}
            request = self.write({"metadata": {"name": "w"}, **obj}, f"{resource}.{group}".rstrip("."))
            self.validate(self.plugin(), request)
            self.assertEqual(request.warnings, [f'would violate PodSecurity "baseline:latest": {BASELINE}'], resource)
            self.assertEqual(list(request.annotations), [VIOLATIONS])

    def test_not_evaluated(self) -> None:
        """Subresources of workloads and controllers without a template are not evaluated."""
        self.labels(warn="restricted")
        for obj, resource in (
            ({"metadata": {}, "spec": {"replicas": 1}}, "deployments.apps/scale"),
            ({"metadata": {}, "spec": {}}, "replicationcontrollers"),
        ):
            request = self.write(obj, resource)
            self.validate(self.plugin(), request)
            self.assertEqual((request.warnings, request.annotations), ([], {}))

    def test_no_namespace(self) -> None:
        """A workload is admitted even if its namespace does not exist."""
        request = self.write({"metadata": {}, "spec": {"template": pod()}}, "deployments.apps")
        self.validate(self.plugin(), request)
        self.assertIn("failed to lookup namespace", request.annotations[ERROR])


class NamespaceTests(NamespaceTestCase):
    """Tests of the labels of namespaces."""

    def test_invalid(self) -> None:
        """Invalid labels are rejected; existing invalid labels do not prevent other changes."""
        error = self.rejection(self.plugin(), self.namespace(enforce="no", audit_version="v2"))
        self.assertEqual((error.code, error.reason), (422, "Invalid"))
        assert error.details is not None
        self.assertEqual(
            [(cause["field"], cause["message"]) for cause in error.details["causes"]],
            [
                (
                    "metadata.labels[pod-security.kubernetes.io/enforce]",
                    'Invalid value: "no": must be one of privileged, baseline, restricted',
                ),
                (
                    "metadata.labels[pod-security.kubernetes.io/audit-version]",
                    'Invalid value: "v2": must be "latest" or "v1.x"',
                ),
            ],
        )
        old = labelled(enforce="no")
        self.validate(self.plugin(), self.namespace({**old, "a": "b"}, enforce="no"))
        self.assertEqual(self.rejection(self.plugin(), self.namespace(old, enforce="never")).code, 422)

    def test_versions(self) -> None:
        """A version is C{latest} or C{v1.} and a number without leading zeros."""
        for version in ("latest", "v1.0", "v1.36", "v1.999"):
            self.validate(self.plugin(), self.namespace(enforce_version=version))
        for version in ("", "1.2", "v1.02", "v1", "v1.x", "v1.1 ", "v1.\u0661", "v1.99999999999999999999"):
            self.assertEqual(self.rejection(self.plugin(), self.namespace(enforce_version=version)).code, 422, version)

    def test_no_check(self) -> None:
        """If the enforce level does not become stricter, no pod is checked."""
        self.add("a", hostNetwork=True)
        for old, new in (
            ({"enforce": "baseline"}, {"enforce": "baseline", "warn": "restricted"}),
            ({"enforce": "restricted"}, {"enforce": "baseline"}),
            ({"enforce": "restricted"}, {"enforce": "privileged"}),
        ):
            request = self.namespace(labelled(**old), **new)
            self.validate(self.plugin(), request)
            self.assertEqual(request.warnings, [])
        request = self.namespace(labelled(enforce="baseline"), enforce="baseline", enforce_version="v1.20")
        self.validate(self.plugin(), request)
        self.assertEqual(len(request.warnings), 2)

    def test_exempt(self) -> None:
        """Labels of an exempt namespace cause a warning."""
        plugin = self.plugin({"exemptions": {"namespaces": ["ns"]}})
        text = 'namespace "ns" is exempt from Pod Security, and the policy ({}) will be ignored'
        for old in (None, {}):
            request = self.namespace(old, enforce="baseline", warn="restricted", warn_version="v1.20")
            self.validate(plugin, request)
            self.assertEqual(request.warnings, [text.format("enforce=baseline:latest, warn=restricted:v1.20")])
        request = self.namespace(enforce="privileged")
        self.validate(plugin, request)
        self.assertEqual(request.warnings, [])
