"""Tests for L{kubetwist.admission_plugins.podsecurity.evaluation}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission_plugins.podsecurity.configuration import Configuration, load
from kubetwist.admission_plugins.podsecurity.evaluation import (
    PodSecurityEvaluator,
    is_significant_pod_update,
)
from kubetwist.admission_plugins.podsecurity.levels import PREFIX, LevelVersion
from kubetwist.admission_plugins.podsecurity.standards import CheckRegistry
from kubetwist.api.podspecs import PodTemplate
from kubetwist.api.resource import JSONObject
from tests.admission_plugins.fakes import every_container, pod

CONFIGURATION = {
    "kind": "PodSecurityConfiguration",
    "apiVersion": "pod-security.admission.config.k8s.io/v1",
    "exemptions": {"namespaces": ["free"], "usernames": ["root"], "runtimeClasses": ["boxed"]},
}


def evaluator(configuration: JSONObject | None = None) -> PodSecurityEvaluator:
    """Return an evaluator of release 1.36."""
    return PodSecurityEvaluator(Configuration() if configuration is None else load(configuration), CheckRegistry(36))


def labels(**modes: str) -> dict[str, str]:
    """Return labels of a namespace."""
    return {f"{PREFIX}{mode}": level for mode, level in modes.items()}


class JudgeTests(SynchronousTestCase):
    """Tests for L{PodSecurityEvaluator}."""

    def test_pod(self) -> None:
        """
        A violation of enforce denies the pod, of audit is annotated, and of warn causes a warning unless the pod is
        denied.
        """
        bad = pod(hostNetwork=True)
        refused = evaluator().pod(labels(enforce="baseline"), bad, None)
        self.assertEqual(
            refused.denial_message, 'violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)'
        )
        self.assertEqual((refused.warnings, refused.evaluations), ([], [("enforce", LevelVersion("baseline"), False)]))
        recorded = evaluator().pod(labels(audit="baseline", warn="baseline"), bad, None)
        would = 'would violate PodSecurity "baseline:latest": host namespaces (hostNetwork=true)'
        self.assertEqual((recorded.denial_message, recorded.warnings), ("", [would]))
        self.assertEqual(recorded.audit_annotations["audit-violations"], would)

    def test_template(self) -> None:
        """A pod template is never denied and causes warnings."""
        template = PodTemplate({}, {"hostNetwork": True, "containers": []}, "")
        evaluation = evaluator().template(labels(enforce="baseline"), template)
        self.assertEqual((evaluation.denial_message, len(evaluation.warnings)), ("", 1))
        self.assertEqual(evaluator().template(labels(enforce="baseline"), None).warnings, [])

    def test_exempt(self) -> None:
        """Configured namespaces, users and runtime classes are exempt, with an audit annotation."""
        strict = evaluator(CONFIGURATION)
        for namespace, user, message in (("free", "x", "namespace"), ("ns", "root", "user")):
            exempt = strict.exempt(namespace, user)
            assert exempt is not None
            self.assertEqual(exempt.audit_annotations, {"exempt": message})
        self.assertIsNone(strict.exempt("ns", "x"))
        boxed = strict.pod(labels(enforce="baseline"), pod(hostNetwork=True, runtimeClassName="boxed"), None)
        self.assertEqual((boxed.denial_message, boxed.audit_annotations), ("", {"exempt": "runtimeClass"}))

    def test_fully_privileged(self) -> None:
        """In a fully privileged namespace pods are not evaluated."""
        fully_privileged_result = evaluator().fully_privileged_result({})
        assert fully_privileged_result is not None
        self.assertEqual(fully_privileged_result.audit_annotations, {"enforce-policy": "privileged:latest"})
        self.assertIsNone(evaluator().fully_privileged_result(labels(warn="baseline")))

    def test_namespace(self) -> None:
        """The pods of a namespace are checked only if its enforce level becomes stricter."""
        baseline, restricted = labels(enforce="baseline"), labels(enforce="restricted")
        self.assertEqual(
            evaluator().namespace("n", restricted, baseline).recheck_existing_pods_at, LevelVersion("restricted")
        )
        self.assertIsNone(evaluator().namespace("n", baseline, restricted).recheck_existing_pods_at)
        self.assertIsNone(evaluator().namespace("n", restricted, None).recheck_existing_pods_at)
        self.assertEqual(len(evaluator().namespace("n", labels(enforce="x"), baseline).causes), 1)
        self.assertEqual(evaluator().namespace("n", labels(enforce="x"), labels(enforce="x")).causes, [])

    def test_exempt_namespace(self) -> None:
        """Labels of an exempt namespace have no effect and cause a warning."""
        evaluation = evaluator(CONFIGURATION).namespace("free", labels(enforce="baseline"), None)
        self.assertEqual(
            evaluation.warnings,
            ['namespace "free" is exempt from Pod Security, and the policy (enforce=baseline:latest) will be ignored'],
        )


class SignificanceTests(SynchronousTestCase):
    """Tests for L{is_significant_pod_update}."""

    def test_images(self) -> None:
        """A changed image of any container is significant; other changes are not."""
        for kind in ("initContainers", "containers", "ephemeralContainers"):
            changed = every_container()
            changed["spec"][kind][0]["image"] = "other"
            self.assertTrue(is_significant_pod_update(changed, every_container()), kind)
        self.assertFalse(is_significant_pod_update(every_container(env=[{"name": "A"}]), every_container()))

    def test_fewer(self) -> None:
        """A changed number of containers is significant; removed ephemeral containers are not."""
        for kind, expected in (("initContainers", True), ("containers", True), ("ephemeralContainers", False)):
            changed = every_container()
            changed["spec"][kind] = []
            self.assertEqual(is_significant_pod_update(changed, every_container()), expected, kind)
            self.assertTrue(is_significant_pod_update(every_container(), changed), kind)
