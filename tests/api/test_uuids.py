"""Tests of L{kubetwist.api.uuids}."""

from __future__ import annotations

import os
import re

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.uuids import random_uuid


class RandomUUIDTests(SynchronousTestCase):
    """L{random_uuid}."""

    def test_form(self) -> None:
        """Generated ids are random UUIDs."""
        pattern = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
        ids = [random_uuid() for _ in range(200)]
        for one in ids:
            self.assertRegex(one, pattern)
        self.assertEqual(len(set(ids)), len(ids))

    def test_forked(self) -> None:
        """A forked process generates other ids than its parent."""
        random_uuid()
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.write(writing, "".join(random_uuid() for _ in range(70)).encode())
            os._exit(0)
        os.waitpid(child, 0)
        child_ids = os.read(reading, 1 << 16).decode()
        os.close(reading)
        os.close(writing)
        self.assertEqual(len(child_ids), 70 * 36)
        self.assertEqual([one for one in (random_uuid() for _ in range(70)) if one in child_ids], [])
