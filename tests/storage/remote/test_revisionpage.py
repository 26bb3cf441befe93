"""Tests for L{kubetwist.storage.remote._revisionpage}."""

from __future__ import annotations

import os
import subprocess
import sys

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.storage.remote._revisionpage import MappedRevision, RevisionPage

_READER = """
import sys
from kubetwist.storage.remote._revisionpage import MappedRevision
print(MappedRevision(int(sys.argv[1])).read())
"""


class RevisionPageTests(SynchronousTestCase):
    """A revision in shared memory."""

    def page(self) -> RevisionPage:
        """Return a page."""
        page = RevisionPage()
        self.addCleanup(page.close)
        return page

    def test_shared(self) -> None:
        """Every mapping shows what was written last."""
        page = self.page()
        mapped = MappedRevision(os.dup(page.descriptor))
        self.addCleanup(mapped.close)
        for revision in (1, 2**63 - 1, 7):
            page.write(revision)
            self.assertEqual(mapped.read(), revision)

    def test_other_process(self) -> None:
        """Another process reads the revision."""
        page = self.page()
        page.write(42)
        printed = subprocess.check_output(
            [sys.executable, "-c", _READER, str(page.descriptor)], pass_fds=[page.descriptor]
        )
        self.assertEqual(printed, b"42\n")

    def test_without_memfd(self) -> None:
        """A system without files in memory uses a file without a name."""
        self.patch(os, "memfd_create", None)
        page = self.page()
        page.write(9)
        self.assertEqual(os.fstat(page.descriptor).st_nlink, 0)

    def test_not_mappable(self) -> None:
        """A descriptor that cannot be mapped is closed."""
        reading, writing = os.pipe()
        self.addCleanup(os.close, writing)
        with self.assertRaises(OSError):
            MappedRevision(reading)
        with self.assertRaises(OSError):
            os.fstat(reading)

    def test_closed(self) -> None:
        """A page that is closed remains readable where it is mapped."""
        page = RevisionPage()
        mapped = MappedRevision(os.dup(page.descriptor))
        self.addCleanup(mapped.close)
        page.write(5)
        page.close()
        self.assertEqual(mapped.read(), 5)
