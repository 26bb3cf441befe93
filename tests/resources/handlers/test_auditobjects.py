"""Tests for L{kubetwist.resources.handlers.auditobjects}."""

from __future__ import annotations

from typing import Any, cast

import orjson

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.resources.handlers.auditobjects import log_delete_options


class Trail:
    """What the audit is told."""

    def __init__(self, wants_request_object: bool) -> None:
        self.wants_request_object = wants_request_object
        self.sent: list[Any] = []

    def log_request_patch(self, document: bytes) -> None:
        """A body."""
        self.sent.append(orjson.loads(document))


class DeleteOptionsTests(SynchronousTestCase):
    """Tests for L{log_delete_options}."""

    def told(self, body: Any, wants_request_object: bool = True) -> list[Any]:
        """What is told of a body."""
        trail = Trail(wants_request_object)
        log_delete_options(cast(Any, trail), body)
        return trail.sent

    def test_known(self) -> None:
        """What is known of options is told, in the internal version, whichever the client says."""
        head = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/__internal"}
        body = {"kind": "Odd", "apiVersion": "v1", "gracePeriodSeconds": 0, "orphanDependents": None, "more": 1}
        self.assertEqual(self.told(body), [{**head, "gracePeriodSeconds": 0}])
        self.assertEqual(self.told(None), [head])

    def test_not_asked_for(self) -> None:
        """Nothing is told where bodies are not recorded."""
        self.assertEqual(self.told({"gracePeriodSeconds": 0}, wants_request_object=False), [])
