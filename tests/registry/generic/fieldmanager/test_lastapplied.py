"""Tests of L{kubetwist.registry.generic.fieldmanager.lastapplied}."""

from __future__ import annotations

import orjson

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.api.resource import JSONObject
from tests.registry.generic.fieldmanager.objects import (
    CONFIG_MAPS,
    LATER,
    config_map,
    created,
    owners,
    updated,
)

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"


class KubectlTests(SynchronousTestCase):
    """Tests of the migration from client-side to server-side apply."""

    def setUp(self) -> None:
        """Create an object of client-side apply that another manager has changed since."""
        last_applied = orjson.dumps(config_map(a="1", b="1")).decode()
        obj = config_map(a="1", b="1")
        obj["metadata"]["annotations"] = {ANNOTATION: last_applied}
        self.live = updated(created(obj, "kubectl-client-side-apply"), data={"a": "1", "b": "2"})

    def apply(self, applied: JSONObject, manager: str = "kubectl") -> JSONObject:
        """Apply to the object."""
        return CONFIG_MAPS.apply(self.live, applied, manager, LATER, False)

    def test_migration(self) -> None:
        """Fields of client-side apply with unchanged values do not conflict for kubectl."""
        obj = self.apply(config_map(a="9"))
        self.assertEqual(obj["data"], {"a": "9", "b": "2"})
        self.assertEqual(owners(obj)["kubectl"], {"f:data": {"f:a": {}}})

    def test_others(self) -> None:
        """They conflict for other managers, and changed fields conflict for kubectl, too."""
        error = self.assertRaises(APIStatusError, self.apply, config_map(a="9"), "someone")
        self.assertIn(".data.a", str(error))
        error = self.assertRaises(APIStatusError, self.apply, config_map(a="9", b="9"))
        self.assertEqual(str(error), 'Apply failed with 1 conflict: conflict with "other" using v1: .data.b')

    def test_annotation(self) -> None:
        """The annotation is updated, with sorted keys and a newline, and has no owner."""
        obj = self.apply(config_map(b="2", a="<1>"))
        self.assertEqual(
            obj["metadata"]["annotations"][ANNOTATION],
            '{"apiVersion":"v1","data":{"a":"\\u003c1\\u003e","b":"2"},"kind":"ConfigMap","metadata":{"name":"x"}}\n',
        )
        self.assertEqual(owners(obj)["kubectl"], {"f:data": {"f:a": {}, "f:b": {}}})

    def test_unreadable_annotation(self) -> None:
        """An annotation that is not an object of the version allows no fields."""
        for text in (
            "broken {",
            "[]",
            "{}",
            '{"kind":"ConfigMap","apiVersion":"v2"}',
            '{"kind":"ConfigMap","apiVersion":"v1","x":1}',
        ):
            self.live["metadata"]["annotations"][ANNOTATION] = text
            self.assertRaises(APIStatusError, self.apply, config_map(a="9"))
