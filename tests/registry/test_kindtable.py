"""Tests of L{kubetwist.registry.kindtable}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.kindtable import BETAS_ON_BY_DEFAULT, GROUP_PRIORITIES, KINDS, VERSION_PRIORITIES


class TableTests(SynchronousTestCase):
    """Tests of the consistency of the table."""

    def test_groups(self) -> None:
        """Every group has a priority, and every priority is of a group or version of a release."""
        self.assertEqual({kind.group for kind in KINDS}, set(GROUP_PRIORITIES))
        versions = {(kind.group, version) for kind in KINDS for version, _ in kind.versions}
        self.assertLessEqual(VERSION_PRIORITIES.keys(), versions)
        known = {(kind.group, version, kind.resource) for kind in KINDS for version, _ in kind.versions}
        self.assertLessEqual(BETAS_ON_BY_DEFAULT, known)

    def test_names(self) -> None:
        """The names of the kinds of a group are unique."""
        for name in ("kind", "resource"):
            names = [(kind.group, getattr(kind, name)) for kind in KINDS]
            self.assertEqual(len(names), len(set(names)), name)

    def test_storage_prefixes(self) -> None:
        """Kinds that share a prefix of storage keys are the same kind in two groups."""
        kinds_by_prefix: dict[str, set[str]] = {}
        for kind in KINDS:
            if kind.stored:
                kinds_by_prefix.setdefault(kind.key_prefix, set()).add(kind.kind)
        self.assertEqual([prefix for prefix, kinds in kinds_by_prefix.items() if len(kinds) > 1], [])
