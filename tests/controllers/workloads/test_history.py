"""Tests for L{kubetwist.controllers.workloads.history}."""

from __future__ import annotations

from kubetwist.controllers.workloads.history import REVISION_LABEL
from tests.controllers.workloads.daemonsetcase import LABELS, UpdateTestCase, template


class HistoryTests(UpdateTestCase):
    """Tests for L{kubetwist.controllers.workloads.history}."""

    def test_rollback(self) -> None:
        """A rollback uses the old revision with a new number."""
        self.create_and_run(maxUnavailable=4)
        first = self.pods()[0]["metadata"]["labels"][REVISION_LABEL]
        for image in "ba":
            self.edit(template=template(image))
            self.run_pods()
        self.assertEqual(self.revisions(), [(2, "b"), (3, "a")])
        self.assertEqual({pod["metadata"]["labels"][REVISION_LABEL] for pod in self.pods()}, {first})

    def test_history_limit(self) -> None:
        """Unused revisions are kept up to the history limit."""
        self.create_and_run(maxUnavailable=4)
        self.edit(revisionHistoryLimit=2)
        for image in "bcde":
            self.edit(template=template(image))
            self.run_pods()
        self.assertEqual(self.revisions(), [(3, "c"), (4, "d"), (5, "e")])
        self.edit(revisionHistoryLimit=0)
        self.assertEqual(self.revisions(), [(5, "e")])

    def test_history_in_use(self) -> None:
        """Revisions in use by pods are kept."""
        self.create_and_run()
        self.edit(revisionHistoryLimit=0)
        for image in "bc":
            self.edit(template=template(image))
        self.assertEqual(self.revisions(), [(1, "a"), (3, "c")])

    def test_same_revision_twice(self) -> None:
        """Of two adopted revisions of a template one is deleted. Its pods are relabeled, not replaced."""
        self.create_and_run(maxUnavailable=1)
        (name,) = self.names("controllerrevisions", "default", "apps")
        known = self.find("controllerrevisions", name, "default", "apps")
        names = self.names("pods", "default")
        labels = {**LABELS, REVISION_LABEL: "twin"}
        self.make(
            "controllerrevisions",
            "twin",
            "default",
            "apps",
            metadata={"labels": labels},
            data=dict(known["data"]),
            revision=7,
        )
        self.settle()
        self.assertEqual(self.names("controllerrevisions", "default", "apps"), ["twin"])
        self.assertEqual({pod["metadata"]["labels"][REVISION_LABEL] for pod in self.pods()}, {"twin"})
        self.assertEqual(self.names("pods", "default"), names)

    def test_hash_collision(self) -> None:
        """A hash collision is resolved by another name, and counted."""
        self.create_and_run(maxUnavailable=4)
        (name,) = self.names("controllerrevisions", "default", "apps")
        self.remove("daemonsets", "agent", "default", "apps")
        self.remove("controllerrevisions", name, "default", "apps")
        self.make("controllerrevisions", name, "default", "apps", data={"x": 1}, revision=1)
        self.daemon()
        self.assertEqual(self.status["collisionCount"], 1)
        self.assertEqual(len(self.names("controllerrevisions", "default", "apps")), 2)
