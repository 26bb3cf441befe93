"""Tests of L{kubetwist.registry.storagekeys}."""

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


class ResourceOfKeyTests(SynchronousTestCase):
    """Tests of L{resource_of_key}."""

    def test_built_in(self) -> None:
        """The key of each built-in resource is mapped to the group and resource in which its objects are stored."""
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
        """CVE-2022-3162: the key of an object with any name is mapped to its resource."""
        key = f"{kind.key_prefix}/" + (f"{namespace}/{name}" if kind.namespaced else name)
        self.assertEqual(resource_of_key("/registry/")(f"/registry/{key}"), GroupResource(kind.group, kind.resource))

    def test_custom(self) -> None:
        """The key of a custom resource is mapped by its group, which is a domain name."""
        found = resource_of_key("/r/")
        self.assertEqual(found("/r/example.com/swans/name"), GroupResource("example.com", "swans"))
        self.assertEqual(found("/r/example.com/swans/default/name"), GroupResource("example.com", "swans"))

    def test_no_resource(self) -> None:
        """Keys of no object are mapped to None."""
        found = resource_of_key("/registry/")
        for key in (
            "/registry/health",
            "/registry/ranges/serviceips",
            "/registry/masterleases/1.2.3.4",
            "/x/secrets/a",
        ):
            self.assertIs(found(key), None)
