"""Tests for L{kubetwist.registry.kindtable}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.kindtable import BETAS_ON_BY_DEFAULT, GROUP_PRIORITIES, KINDS, VERSION_PRIORITIES


class TableTests(SynchronousTestCase):
    """The table agrees with itself."""

    def test_groups(self) -> None:
        """Every group has a priority, and every priority is one of a group or version that some release has."""
        self.assertEqual({kind.group for kind in KINDS}, set(GROUP_PRIORITIES))
        versions = {(kind.group, version) for kind in KINDS for version, _ in kind.versions}
        self.assertLessEqual(VERSION_PRIORITIES.keys(), versions)
        known = {(kind.group, version, kind.resource) for kind in KINDS for version, _ in kind.versions}
        self.assertLessEqual(BETAS_ON_BY_DEFAULT, known)

    def test_names(self) -> None:
        """No two kinds of a group have a name in common."""
        for name in ("kind", "resource"):
            names = [(kind.group, getattr(kind, name)) for kind in KINDS]
            self.assertEqual(len(names), len(set(names)), name)

    def test_places(self) -> None:
        """Kinds that share a place in the store are one thing in two groups."""
        places: dict[str, set[str]] = {}
        for kind in KINDS:
            if kind.stored:
                places.setdefault(kind.key_prefix, set()).add(kind.kind)
        self.assertEqual([place for place, kinds in places.items() if len(kinds) > 1], [])
