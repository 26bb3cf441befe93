"""Tests of L{kubetwist.registry.generic.parts}."""

from __future__ import annotations

from typing import Any

from zope.interface.verify import verifyObject

from kubetwist.api.options import GetOptions, UpdateOptions
from kubetwist.interfaces import IPatcher
from kubetwist.registry.generic.parts import SubresourceStore, status_rules
from tests.registry.generic.updatetools import ViewTestCase, deployment
from tests.registry.storetools import content


class PartTests(ViewTestCase):
    """Tests of L{kubetwist.registry.generic.parts}."""

    def test_main_leaves_status(self) -> None:
        """Updates of the main resource do not change the status, and increment the generation."""
        new = self.changed(
            self.deployments, "d", lambda obj: (obj["spec"].update(replicas=3), obj.update(status={"replicas": 9}))
        )
        self.assertEqual(new["metadata"]["generation"], 2)
        self.assertNotEqual(new.get("status"), {"replicas": 9})
        new = self.changed(self.deployments, "d", lambda obj: obj["metadata"].update(labels={"a": "b"}))
        self.assertEqual(new["metadata"]["generation"], 2)

    def test_status_leaves_the_rest(self) -> None:
        """Updates of the status change only the status."""
        part = SubresourceStore(self.deployments, "status", status_rules)
        verifyObject(IPatcher, part)

        def change(obj: Any) -> Any:
            obj["spec"]["replicas"] = 7
            obj["metadata"]["labels"] = {"a": "b"}
            obj["status"] = {"replicas": 1}
            return obj

        record, created = self.successResultOf(part.update(self.scope, "d", change, UpdateOptions(), patching=True))
        new = content(record)
        self.assertFalse(created)
        self.assertEqual((new["spec"]["replicas"], new["status"]["replicas"]), (2, 1))
        self.assertNotIn("labels", new["metadata"])
        self.assertEqual(new["metadata"]["generation"], 1)
        self.assertEqual(content(part.get(self.scope, "d", GetOptions())), new)

    def test_status_of_missing_object(self) -> None:
        """A PUT of the status of a missing object is a 404, even for kinds that PUT creates."""
        part = SubresourceStore(self.deployments, "status", status_rules)
        error = self.refused(part.update(self.scope, "none", lambda old: deployment("none"), UpdateOptions()))
        self.assertEqual(error.code, 404)
