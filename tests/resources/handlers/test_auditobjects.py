"""Tests for L{kubetwist.resources.handlers.auditobjects}."""

from __future__ import annotations

from typing import Any, cast

import orjson

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.resources.handlers.auditobjects import log_delete_options


class Trail:
    """Fake audit trail that records what is logged."""

    def __init__(self, wants_request_object: bool) -> None:
        self.wants_request_object = wants_request_object
        self.sent: list[Any] = []

    def log_request_patch(self, document: bytes) -> None:
        """Record a body."""
        self.sent.append(orjson.loads(document))


class DeleteOptionsTests(SynchronousTestCase):
    """L{log_delete_options}."""

    def logged(self, body: Any, wants_request_object: bool = True) -> list[Any]:
        """Return what is logged for a body."""
        trail = Trail(wants_request_object)
        log_delete_options(cast(Any, trail), body)
        return trail.sent

    def test_known(self) -> None:
        """Known options are logged in the internal version, regardless of the version in the body."""
        head = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/__internal"}
        body = {"kind": "Odd", "apiVersion": "v1", "gracePeriodSeconds": 0, "orphanDependents": None, "more": 1}
        self.assertEqual(self.logged(body), [{**head, "gracePeriodSeconds": 0}])
        self.assertEqual(self.logged(None), [head])

    def test_not_requested(self) -> None:
        """Nothing is logged if the audit policy does not request bodies."""
        self.assertEqual(self.logged({"gracePeriodSeconds": 0}, wants_request_object=False), [])
