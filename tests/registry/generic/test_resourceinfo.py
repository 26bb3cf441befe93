"""Tests of L{kubetwist.registry.generic.resourceinfo}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.resourceinfo import SCALE, SubresourceInfo, define_kind, storage_version_hash
from tests.resources.server import all_kinds


class KindTests(SynchronousTestCase):
    """Tests of L{define_kind}."""

    def test_rules(self) -> None:
        """Omitted parameters are derived from the names of the kind."""
        kind = define_kind("apps", "odds", "Odd")
        self.assertEqual((kind.singular, kind.key_prefix, kind.storage_group), ("odd", "odds", "apps"))
        self.assertEqual(kind.versions, (("v1", 0),))

    def test_parameters(self) -> None:
        """Given parameters are used, including an empty group; subresources are sorted by name."""
        more = SubresourceInfo("approval", "Odd")
        kind = define_kind(
            "apps",
            "odds",
            "Odd",
            versions="v1:36 v1beta1",
            short="o od",
            storage_group="",
            prefix="odds/specs",
            status=True,
            subresources=(SCALE, more),
        )
        self.assertEqual(kind.versions, (("v1", 36), ("v1beta1", 0)))
        self.assertEqual((kind.short_names, kind.storage_group, kind.key_prefix), (("o", "od"), "", "odds/specs"))
        self.assertEqual([one.name for one in kind.subresources], ["approval", "scale", "status"])


class ResourceTests(SynchronousTestCase):
    """Tests of L{ResourceInfo}."""

    def test_hash(self) -> None:
        """The hash is the same as in the reference."""
        self.assertEqual(storage_version_hash("", "v1", "Pod"), "xPOwRZ+Yhw8=")

    def test_names(self) -> None:
        """A resource finds subresources by name, and has the kind of its stored objects."""
        pods = next(info for info in all_kinds() if info.resource == "pods" and not info.group)
        found = pods.subresource("eviction")
        assert found is not None
        self.assertEqual((found.kind, found.view), ("Eviction", "action"))
        self.assertIsNone(pods.subresource("scale"))
        self.assertEqual(str(pods.storage_kind.kind), "Pod")
        self.assertEqual(pods.gvk("v1"), pods.storage_kind)
