"""Tests for L{kubetwist.resources.install}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.resources.install import group_version_path, verbs
from tests.resources.server import Server, all_kinds


class InstallTests(SynchronousTestCase):
    """The documentation of served resources."""

    def test_verbs_follow_from_capabilities(self) -> None:
        """The verbs in discovery follow from the capabilities of the storage object."""
        server = Server("configmaps", "namespaces", "selfsubjectreviews", "nodes")
        served_resources = server.installer.served_resources
        listed_verbs = {
            (one.resource, one.subresource): one.verbs
            for version in served_resources.group_versions()
            for one in served_resources.resources(version)
        }
        everything = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
        self.assertEqual(listed_verbs["configmaps", ""], everything)
        self.assertEqual(
            listed_verbs["namespaces", ""], tuple(verb for verb in everything if verb != "deletecollection")
        )
        self.assertEqual(listed_verbs["namespaces", "finalize"], ("update",))
        self.assertEqual(listed_verbs["namespaces", "status"], ("get", "patch", "update"))
        self.assertEqual(listed_verbs["selfsubjectreviews", ""], ("create",))
        self.assertEqual(listed_verbs["nodes", "proxy"], ("create", "delete", "get", "patch", "update"))
        self.assertEqual(verbs(server.stores.get("", "nodes")), everything)

    def test_all_kinds(self) -> None:
        """Every listable resource of a release can be listed in each served version, and is empty."""
        server = Server(*(info.resource for info in all_kinds()))
        client = server.client()
        served_resources = server.installer.served_resources
        listed = 0
        for version in served_resources.group_versions():
            for one in served_resources.resources(version):
                if "list" in one.verbs and one.resource != "componentstatuses":
                    code, found = client.ask("GET", f"{group_version_path(version)}/{one.resource}")
                    self.assertEqual((code, found["kind"], found["items"]), (200, one.list_kind, []))
                    listed += 1
        self.assertGreater(listed, 50)
