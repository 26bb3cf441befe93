# mypy: allow-untyped-calls
"""Tests for L{kubetwist.storage.etcd._expiry}, and for L{kubetwist.storage.migration} with etcd."""

from __future__ import annotations

import os
from typing import Any

from kubetwist.api.storage import Write
from kubetwist.storage.memory import MemoryStorage
from kubetwist.storage.migration import Migration, MigrationError
from kubetwist.storage.sqlite import SQLiteStorage

from .case import EtcdCase


class MovingTests(EtcdCase):
    """Migration to and from etcd."""

    def other(self, storage: Any) -> Any:
        """Open another store until the end of the test."""
        self.reactor.run(storage.open())
        self.addCleanup(lambda: self.reactor.run(storage.close()))
        return storage

    def move(self, source: Any, target: Any) -> Any:
        """Run a migration."""
        return self.reactor.run(Migration(source, target, "/registry/", "/registry/", self.reactor).run())

    def assert_about(self, result: dict[str, float], expected: dict[str, float]) -> None:
        """Assert that times differ only by shared leases and rounded seconds."""
        self.assertEqual(result.keys(), expected.keys())
        for key, when in expected.items():
            self.assertTrue(when - 5 <= result[key] <= when + 65, (key, result[key] - when))

    def test_expiration_times(self) -> None:
        """The expiration times of the keys below a prefix that have a lease are read from etcd."""
        storage = self.open()
        now = self.reactor.seconds()
        self.write(storage, "/registry/a", b"1", ttl=100)
        self.write(storage, "/registry/b", b"1", ttl=5000)
        self.write(storage, "/registry/c", b"1")
        self.write(storage, "/other/a", b"1", ttl=100)
        self.assert_about(
            self.reactor.run(storage.expiration_times("/registry/")),
            {"/registry/a": now + 100, "/registry/b": now + 5000},
        )

    def test_there_and_back(self) -> None:
        """All data, including large values and times to live, is copied to etcd and back."""
        source = self.other(SQLiteStorage(os.path.abspath(self.mktemp()), self.reactor))
        for number in range(250):
            value = os.urandom(400_000 if number % 100 == 7 else number)
            ttl = 1000.0 + number if number % 10 == 3 else None
            self.reactor.run(source.commit([Write(f"/registry/x/{number}", value, 0, ttl)]))
        etcd = self.open()
        moved = self.move(source, etcd)
        self.assertEqual((moved.keys, moved.expiring), (250, 25))
        due = source.list_expirations()
        self.assert_about(self.reactor.run(etcd.expiration_times("/registry/")), due)
        back = self.other(MemoryStorage(self.reactor))
        self.assertEqual(self.move(etcd, back).keys, 250)
        self.assert_about(back.list_expirations(), due)
        pages = [self.reactor.run(storage.read_page("/registry/")).items for storage in (source, back)]
        one, other = ({item.key: item.value for item in items} for items in pages)
        self.assertEqual(one, other)

    def test_served(self) -> None:
        """An etcd that a server is registered in is not migrated."""
        storage = self.open()
        self.write(storage, "/registry/x", b"1")
        self.write(storage, "/registry/masterleases/10.0.0.1", b"{}", ttl=15)
        with self.assertRaises(MigrationError) as caught:
            self.move(storage, self.other(MemoryStorage(self.reactor)))
        self.assertIn("is in use by 10.0.0.1", str(caught.exception))
