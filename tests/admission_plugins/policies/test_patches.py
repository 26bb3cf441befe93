"""Tests for L{kubetwist.admission_plugins.policies.patches}."""

from __future__ import annotations

from tests.admission_plugins.policies.policycase import GROUP, MAPS, MutatingTestCase, rule


class PatchTests(MutatingTestCase):
    """Tests for L{kubetwist.admission_plugins.policies.patches}."""

    def test_list_items(self) -> None:
        """Items of a map list are merged by their keys, and missing keys get defaults."""
        constraints = {"resourceRules": [rule("pods")]}
        self.mutate(
            self.apply(
                "Object{spec: Object.spec{containers: object.spec.containers.map(c, "
                "Object.spec.containers{name: c.name, imagePullPolicy: 'Always'})}}"
            ),
            matchConstraints=constraints,
        )
        containers = [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]
        pod = {"metadata": {"name": "p"}, "spec": {"containers": containers}}
        made = self.send_request("POST", "/api/v1/namespaces/default/pods", pod)
        self.assertEqual(
            [(one["name"], one["image"], one["imagePullPolicy"]) for one in made["spec"]["containers"]],
            [("a", "a:1", "Always"), ("b", "b:1", "Always")],
        )

    def test_atomic(self) -> None:
        """Atomic lists, maps and structs cannot be merged."""
        self.mutate(
            self.apply("Object{spec: Object.spec{nodeSelector: {'a': 'b'}, hostAliases: []}}"),
            self.apply("Object{spec: Object.spec{containers: [Object.spec.containers{name: 'a', command: ['x']}]}}"),
            matchConstraints={"resourceRules": [rule("pods")]},
        )
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}
        code, reason, message = self.request_error("POST", "/api/v1/namespaces/default/pods", pod)
        self.assertEqual((code, reason), (403, "Invalid"))
        self.assertIn("may not mutate atomic arrays, maps or structs: .spec.nodeSelector", message)

    def test_unknown_field(self) -> None:
        """An unknown field and an object of another type are rejected."""
        self.mutate(self.apply("Object{nothere: 'x'}"))
        _, _, message = self.request_error("POST", MAPS, {"metadata": {"name": "a"}})
        self.assertIn("error applying patch: failed to convert patch object to typed object: .nothere", message)
        self.policy("mutating", "q", mutations=[self.apply("Object{metadata: Object.spec{labels: {'a': 'b'}}}")])
        self.send_request("DELETE", f"{GROUP}/mutatingadmissionpolicies/p")
        _, _, message = self.request_error("POST", MAPS, {"metadata": {"name": "a"}})
        self.assertIn('type mismatch: unexpected type name "Object.spec", expected "Object.metadata"', message)

    def test_patch_that_does_not_apply(self) -> None:
        """A JSON patch that cannot be applied is rejected; if a test operation fails, nothing is changed."""
        self.mutate(
            self.patch(
                "[JSONPatch{op: 'test', path: '/data/k', value: 'v'}, JSONPatch{op: 'remove', path: '/data/gone'}]"
            )
        )
        self.assertEqual(self.create("a", {"k": "other"})["data"], {"k": "other"})
        _, _, message = self.request_error("POST", MAPS, {"metadata": {"name": "b"}, "data": {"k": "v"}})
        self.assertEqual(
            message,
            "policy 'p' with binding 'p-b' denied request: JSON Patch: error in remove for path: '/data/gone': Unable "
            "to remove nonexistent key: gone: missing value",
        )
