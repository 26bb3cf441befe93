"""Tests for L{kubetwist.cli.flagtable}."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Final

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cli import flags
from kubetwist.cli.flagtable import FLAGS

#: The flags of kube-apiserver 1.36, one per line.
_NAMES: Final = Path(__file__).with_name("referenceflags.txt")
#: Flags that are handled before the table is used.
_ELSEWHERE: Final = frozenset(("help", "version"))


class FlagTableTests(SynchronousTestCase):
    """The table of flags."""

    def test_all(self) -> None:
        """Every flag of kube-apiserver is in the table, supported or rejected with a reason."""
        names = set(_NAMES.read_text().split())
        self.assertGreater(len(names), 150)
        self.assertEqual(names - {flag.name for flag in FLAGS} - _ELSEWHERE, set())

    def test_sections(self) -> None:
        """Each section has one module, which contains no flags of other sections."""
        for name, module in vars(flags).items():
            if not name.startswith("_"):
                self.assertEqual(len({flag.section for flag in module.FLAGS}), 1, name)
        sections = [section for section, _ in groupby(flag.section for flag in FLAGS)]
        self.assertEqual(len(sections), len(set(sections)))
        self.assertEqual(len({flag.name for flag in FLAGS}), len(FLAGS))
