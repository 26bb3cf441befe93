"""Tests for L{kubetwist.cli.flagtable}."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Final

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cli import flags
from kubetwist.cli.flagtable import FLAGS

#: The flags of kube-apiserver 1.36, one a line.
_NAMES: Final = Path(__file__).with_name("referenceflags.txt")
#: Flags that are not in the table: they are handled before it is used.
_ELSEWHERE: Final = frozenset(("help", "version"))


class FlagTableTests(SynchronousTestCase):
    """Which flags there are."""

    def test_all(self) -> None:
        """Every flag of kube-apiserver is known, if only to say why it cannot be set."""
        names = set(_NAMES.read_text().split())
        self.assertGreater(len(names), 150)
        self.assertEqual(names - {flag.name for flag in FLAGS} - _ELSEWHERE, set())

    def test_sections(self) -> None:
        """The flags of a section are in one module, which has no others."""
        for name, module in vars(flags).items():
            if not name.startswith("_"):
                self.assertEqual(len({flag.section for flag in module.FLAGS}), 1, name)
        sections = [section for section, _ in groupby(flag.section for flag in FLAGS)]
        self.assertEqual(len(sections), len(set(sections)))
        self.assertEqual(len({flag.name for flag in FLAGS}), len(FLAGS))
