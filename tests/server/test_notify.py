"""Tests for L{kubetwist.server.notify}."""

from __future__ import annotations

import os
import socket
import tempfile

from twisted.trial.unittest import TestCase

from kubetwist.server.notify import notify


class NotifyTests(TestCase):
    """Tests for L{notify}."""

    def listen(self, address: str) -> socket.socket:
        """A socket of a service manager."""
        notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(notified.close)
        notified.bind(address)
        notified.settimeout(5)
        return notified

    def test_path(self) -> None:
        """The service manager is told at a socket in the file system."""
        folder = tempfile.mkdtemp()
        notified = self.listen(f"{folder}/notify")
        self.patch(os, "environ", {"NOTIFY_SOCKET": f"{folder}/notify"})
        notify("READY=1")
        self.assertEqual(notified.recv(100), b"READY=1")

    def test_abstract(self) -> None:
        """Or at one that has only a name."""
        name = f"kubetwist-test-{os.getpid()}"
        notified = self.listen(f"\0{name}")
        self.patch(os, "environ", {"NOTIFY_SOCKET": f"@{name}"})
        notify("READY=1")
        self.assertEqual(notified.recv(100), b"READY=1")

    def test_nobody(self) -> None:
        """Without a service manager, or when it does not listen, nothing happens."""
        self.patch(os, "environ", {})
        notify("READY=1")
        self.patch(os, "environ", {"NOTIFY_SOCKET": "/nowhere/notify"})
        notify("READY=1")
