"""Tests of L{kubetwist.registry.core.pod.validation.resources}, through the strategy of pods."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.pods import (
    CONTAINER,
    in_container,
    pod,
    problems,
)


class ContainerResourceTests(SynchronousTestCase):
    """Tests of the resources of containers."""

    def test_claims(self) -> None:
        """A container uses a whole resource claim, or single requests of it."""
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
        """A resource claim of the pod without a name is one error."""
        container = {**CONTAINER, "resources": {"claims": [{"name": "b"}]}}
        given = {"resourceClaimName": "r"}
        found = problems(containers=[container], resourceClaims=[given, {"name": "a", **given}])
        self.assertEqual(found[0], "spec.resourceClaims[0].name: Required value")
        self.assertTrue(found[1].endswith("pod.spec.resourceClaims: a"), found)

    def test_pages(self) -> None:
        """Invalid page sizes have no multiples."""
        amounts = {"hugepages-odd": "2Mi", "cpu": "1"}
        self.assertEqual(
            in_container(resources={"limits": amounts, "requests": {"cpu": "1"}})[:1],
            [
                'resources.limits[hugepages-odd]: Invalid value: "2Mi": '
                "2Mi is not positive integer multiple of hugepages-odd"
            ],
        )

    def test_names_of_resources(self) -> None:
        """A malformed name with a domain is not an extended resource."""
        found = in_container(resources={"limits": {"example.com/a b": "1"}, "requests": {}})
        self.assertIn("doesn't follow extended resource name standard", found[1])


class PodResourceTests(SynchronousTestCase):
    """Tests of pod-level resources."""

    def test_amounts_of_pods(self) -> None:
        """Default pod-level requests are the totals of the containers, including init containers and sidecars."""

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

    def test_whole_resources(self) -> None:
        """Pod-level requests must be at least the peak of the containers."""

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
