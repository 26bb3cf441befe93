"""Tests for L{kubetwist.registry.storagekeys}."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import sampled_from, text

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.names import validate_path_segment_name
from kubetwist.api.resource import GroupResource
from kubetwist.registry.generic.resourceinfo import Kind
from kubetwist.registry.kindtable import KINDS
from kubetwist.registry.storagekeys import resource_of_key

STORED = [kind for kind in KINDS if kind.stored and kind.storage_group == kind.group]
SEGMENTS = text(min_size=1).filter(lambda name: not validate_path_segment_name(name))


class PlacesTests(SynchronousTestCase):
    """Which resource is where."""

    def test_built_in(self) -> None:
        """Every built-in resource is found at its place, by the name that its objects are stored by."""
        found = resource_of_key("/registry/")
        for key, resource in (
            ("secrets/default/db", GroupResource("", "secrets")),
            ("services/specs/default/web", GroupResource("", "services")),
            ("services/endpoints/default/web", GroupResource("", "endpoints")),
            ("minions/node", GroupResource("", "nodes")),
            ("deployments/default/web", GroupResource("apps", "deployments")),
            ("events/default/e", GroupResource("", "events")),
            ("apiregistration.k8s.io/apiservices/v1.", GroupResource("apiregistration.k8s.io", "apiservices")),
        ):
            self.assertEqual(found(f"/registry/{key}"), resource)
        for kind in STORED:
            place = f"/registry/{kind.key_prefix}/" + ("namespace/name" if kind.namespaced else "name")
            self.assertEqual(found(place), GroupResource(kind.group, kind.resource))

    @given(kind=sampled_from(STORED), namespace=SEGMENTS, name=SEGMENTS)
    def test_cve_2022_3162(self, kind: Kind, namespace: str, name: str) -> None:
        """CVE-2022-3162: whatever an object is called, its key is that of an object of its own resource."""
        key = f"{kind.key_prefix}/" + (f"{namespace}/{name}" if kind.namespaced else name)
        self.assertEqual(resource_of_key("/registry/")(f"/registry/{key}"), GroupResource(kind.group, kind.resource))

    def test_custom(self) -> None:
        """A custom resource is found by its group, which is a domain."""
        found = resource_of_key("/r/")
        self.assertEqual(found("/r/example.com/swans/name"), GroupResource("example.com", "swans"))
        self.assertEqual(found("/r/example.com/swans/default/name"), GroupResource("example.com", "swans"))

    def test_nothing(self) -> None:
        """What is no object is no resource."""
        found = resource_of_key("/registry/")
        for key in (
            "/registry/health",
            "/registry/ranges/serviceips",
            "/registry/masterleases/1.2.3.4",
            "/x/secrets/a",
        ):
            self.assertIs(found(key), None)
