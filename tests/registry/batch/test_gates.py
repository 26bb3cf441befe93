"""Tests of feature gates of Jobs."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.gatetools import created, gated, updated
from tests.registry.strategytools import CONTAINER

TEMPLATE = {"spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}


class FieldTests(SynchronousTestCase):
    """Tests of the fields of Jobs."""

    def test_fields(self) -> None:
        """Fields of disabled gates are dropped from new Jobs, and kept by updates if they are in use."""
        cases: tuple[tuple[str, tuple[int, int], dict[str, Any]], ...] = (
            ("JobManagedBy", (1, 34), {"managedBy": "example.com/me"}),
            ("JobSuccessPolicy", (1, 32), {"successPolicy": {"rules": [{"succeededCount": 1}]}}),
            ("JobBackoffLimitPerIndex", (1, 32), {"backoffLimitPerIndex": 1}),
            ("JobBackoffLimitPerIndex", (1, 32), {"maxFailedIndexes": 1}),
            ("JobPodReplacementPolicy", (1, 33), {"podReplacementPolicy": "Failed"}),
        )
        for gate, release, field in cases:
            spec = {"template": TEMPLATE, **field}
            [name] = field
            on, off = (gated("batch", "Job", release, **{gate: value}) for value in (True, False))
            used, unused = created(on, spec=spec), created(off, spec=spec)
            self.assertEqual(used["spec"][name], field[name])
            self.assertNotIn(name, unused["spec"])
            self.assertEqual(updated(off, used, spec=spec)["spec"][name], field[name])
            # Validation rejects the change of this field.
            self.assertEqual(name in updated(off, unused, spec=spec)["spec"], gate == "JobManagedBy")

    def test_replacement_default(self) -> None:
        """The pod replacement policy has a default if its gate is enabled."""
        for enabled in (True, False):
            strategy = gated("batch", "Job", (1, 33), JobPodReplacementPolicy=enabled)
            self.assertEqual("podReplacementPolicy" in created(strategy, spec={"template": TEMPLATE})["spec"], enabled)

    def test_failure_policy(self) -> None:
        """Rules that fail an index are dropped from new Jobs if indexes have no limits."""
        rules = [{"action": "FailIndex"}, {"action": "Count"}]
        spec = {"template": TEMPLATE, "podFailurePolicy": {"rules": rules}}
        on, off = (gated("batch", "Job", (1, 32), JobBackoffLimitPerIndex=value) for value in (True, False))
        used = created(on, spec=spec)
        self.assertEqual(used["spec"]["podFailurePolicy"]["rules"], rules)
        self.assertEqual(created(off, spec=spec)["spec"]["podFailurePolicy"]["rules"], rules[1:])
        self.assertEqual(updated(off, used, spec=spec)["spec"]["podFailurePolicy"]["rules"], rules)
