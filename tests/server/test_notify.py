"""Tests of L{kubetwist.server.notify}."""

from __future__ import annotations

import os
import socket
import tempfile

from twisted.trial.unittest import TestCase

from kubetwist.server.notify import notify


class NotifyTests(TestCase):
    """L{notify}."""

    def listen(self, address: str) -> socket.socket:
        """Return a socket of a service manager."""
        notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(notified.close)
        notified.bind(address)
        notified.settimeout(5)
        return notified

    def test_path(self) -> None:
        """The state is sent to a socket in the file system."""
        folder = tempfile.mkdtemp()
        notified = self.listen(f"{folder}/notify")
        self.patch(os, "environ", {"NOTIFY_SOCKET": f"{folder}/notify"})
        notify("READY=1")
        self.assertEqual(notified.recv(100), b"READY=1")

    def test_abstract(self) -> None:
        """The state is sent to an abstract socket."""
        name = f"kubetwist-test-{os.getpid()}"
        notified = self.listen(f"\0{name}")
        self.patch(os, "environ", {"NOTIFY_SOCKET": f"@{name}"})
        notify("READY=1")
        self.assertEqual(notified.recv(100), b"READY=1")

    def test_no_service_manager(self) -> None:
        """Without a listening service manager nothing happens."""
        self.patch(os, "environ", {})
        notify("READY=1")
        self.patch(os, "environ", {"NOTIFY_SOCKET": "/nowhere/notify"})
        notify("READY=1")
