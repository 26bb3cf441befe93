"""Tests for L{kubetwist.cli.flags.etcd}."""

from __future__ import annotations

from ..commandlines import CommandLineTestCase, parsed


class StorageTests(CommandLineTestCase):
    """Storage media type."""

    def test_storage_media_type(self) -> None:
        """Only etcd can store protobuf."""
        flag = "--storage-media-type=application/vnd.kubernetes.protobuf"
        self.assertEqual(parsed()["storage-media-type"], "application/json")
        taken = parsed(flag, "--etcd-servers=http://127.0.0.1:2379")
        self.assertEqual(taken["storage-media-type"], "application/vnd.kubernetes.protobuf")
        for arguments, backend in (((), "sqlite"), (("--in-memory",), "memory")):
            self.assert_rejected(
                f"{flag} needs --etcd-servers: the storage backend {backend} keeps objects as application/json",
                flag,
                *arguments,
            )
