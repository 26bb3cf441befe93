"""Tests for admission plugins on large pods, which are processed outside of the reactor's thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from twisted.internet.defer import Deferred, ensureDeferred, execute
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission.chain import AdmissionChain
from kubetwist.admission_plugins.limitranger import LimitRanger
from kubetwist.admission_plugins.podsecurity.plugin import PodSecurity
from kubetwist.admission_plugins.serviceaccount import ServiceAccount
from kubetwist.api.errors import APIStatusError
from kubetwist.api.resource import JSONObject
from tests.admission_plugins.fakes import Context, every_container, write


class LargePodTests(SynchronousTestCase):
    """Tests for plugins that go through all containers of a pod."""

    def setUp(self) -> None:
        """Create a namespace with an account that lists a Secret, a LimitRange and the restricted standard."""
        self.computed: list[Callable[..., Any]] = []
        self.context = Context()
        labels = {"pod-security.kubernetes.io/warn": "restricted"}
        self.context.add("", "namespaces", {"metadata": {"name": "ns", "labels": labels}})
        enforced = {"kubernetes.io/enforce-mountable-secrets": "true"}
        self.context.add(
            "",
            "serviceaccounts",
            {"metadata": {"name": "default", "namespace": "ns", "annotations": enforced}, "secrets": [{"name": "s"}]},
        )
        limit = {"type": "Container", "default": {"cpu": "1"}, "max": {"cpu": "2"}}
        self.context.add("", "limitranges", {"metadata": {"name": "l", "namespace": "ns"}, "spec": {"limits": [limit]}})

    def _computing(self, function: Callable[..., Any], *arguments: Any) -> Deferred[Any]:
        self.computed.append(function)
        return execute(function, *arguments)

    def _written(self, obj: JSONObject, *, large: bool) -> tuple[JSONObject, list[str], str]:
        """Return a pod after admission, the warnings, and the reason of a refusal."""
        request = write(orjson.loads(orjson.dumps(obj)), context=self.context)
        request.attributes.computing = self._computing if large else None
        chain = AdmissionChain([ServiceAccount(), LimitRanger(), PodSecurity.configured(self.context, None)])

        async def admit() -> str:
            try:
                await chain.admit(request.attributes)
                await chain.validate(request.attributes)
            except APIStatusError as error:
                return error.message
            return ""

        reason = self.successResultOf(ensureDeferred(admit()))
        admitted = request.attributes.object
        assert admitted is not None
        for volume in admitted["spec"].get("volumes") or ():
            volume["name"] = "token"
        for kind in ("initContainers", "containers", "ephemeralContainers"):
            for container in admitted["spec"].get(kind) or ():
                container["volumeMounts"] = len(container.get("volumeMounts") or ())
        return admitted, request.warnings, reason

    def test_computed(self) -> None:
        """Large pods are processed in the computation thread, small ones immediately."""
        self._written(every_container(), large=False)
        self.assertEqual(self.computed, [])
        self._written(every_container(), large=True)
        names = [function.__name__ for function in self.computed]
        self.assertEqual(
            names,
            [
                "_apply_account",
                "_merge_all_defaults",
                "_limit_secret_references",
                "_validate_all",
                "_evaluate_object",
            ],
        )

    def test_same(self) -> None:
        """The result for a pod does not depend on its size."""
        secret = {"name": "X", "valueFrom": {"secretKeyRef": {"name": "other", "key": "k"}}}
        for obj in (
            every_container(),
            every_container(env=[secret]),
            every_container(resources={"limits": {"cpu": "3"}}),
        ):
            small, large = (self._written(obj, large=large) for large in (False, True))
            self.assertEqual(small, large)
        self.assertIn("maximum cpu usage per Container is 2", large[2])
