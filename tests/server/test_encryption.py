"""Tests of L{kubetwist.server.encryption}: encryption at rest, over HTTP, with a store in a file."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from base64 import b64encode
from pathlib import Path
from typing import Any

import orjson

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from kubetwist.server.errors import StartError
from kubetwist.storage.encryption._envelope import key_id_hash
from kubetwist.testing._inprocess import InProcessServer
from kubetwist.testing.trial import KubeAPIMixin
from tests.storage.encryption.kmsplugin import KMSPlugin

SECRETS = "/api/v1/namespaces/default/secrets"
VALUE = b64encode(b"correct horse battery staple").decode()


def provider(kind: str, *names: str) -> dict[str, Any]:
    """Return a provider whose keys are derived from their names."""
    keys = [{"name": name, "secret": b64encode(name.encode().ljust(32, b".")).decode()} for name in names]
    return {kind: {"keys": keys}}


IDENTITY: dict[str, Any] = {"identity": {}}


class EncryptionCase(KubeAPIMixin, TestCase):
    """Base of tests that start servers on one data directory with an encryption configuration."""

    def setUp(self) -> None:
        """Create a directory."""
        # The path of a socket has at most about a hundred bytes.
        folder = tempfile.TemporaryDirectory(prefix="enc-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path = self.folder / "encryption.json"
        self.server: InProcessServer | None = None

    def configure(self, *providers: dict[str, Any], resources: tuple[str, ...] = ("secrets",)) -> None:
        """Write the encryption configuration."""
        rules = [{"resources": list(resources), "providers": list(providers)}]
        head = {"kind": "EncryptionConfiguration", "apiVersion": "apiserver.config.k8s.io/v1"}
        self.path.write_text(json.dumps({**head, "resources": rules}))

    async def start(self, *flags: str) -> None:
        """Start a server, after stopping the previous one."""
        await self.stop()
        server = InProcessServer(
            "--storage-backend=sqlite",
            f"--encryption-provider-config={self.path}",
            *flags,
            data_dir=self.folder / "data",
            controllers="",
        )
        self.addCleanup(server.stop)
        self.server = await server.start()

    async def stop(self) -> None:
        """Stop the server."""
        server, self.server = self.server, None
        if server is not None:
            await server.stop()

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request."""
        assert self.server is not None
        return await deferToThread(self.server.request, method, path, body)  # type: ignore[no-any-return]

    async def put(self, name: str, **changes: Any) -> int:
        """Create a secret; return its resource version."""
        secret = {"metadata": {"name": name, **changes}, "data": {"password": VALUE}}
        code, created = await self.ask("POST", SECRETS, secret)
        self.assertEqual(code, 201, created)
        return int(created["metadata"]["resourceVersion"])

    async def value(self, name: str) -> Any:
        """Return the value of a secret, or code and message of the error."""
        code, result = await self.ask("GET", f"{SECRETS}/{name}")
        return result["data"]["password"] if code == 200 else (code, result["message"])

    def stored(self, name: str) -> bytes:
        """Return the newest stored value of a secret."""
        return self.rows(f"/registry/secrets/default/{name}")[-1]

    def rows(self, key: str) -> list[bytes]:
        """Return all stored values of a key."""
        with sqlite3.connect(f"file:{self.folder / 'data' / 'store.sqlite'}?mode=ro", uri=True) as store:
            result = store.execute("SELECT value FROM log WHERE key = ? ORDER BY rowid", (key,)).fetchall()
        store.close()
        return [row[0] for row in result]

    def damage(self, name: str, value: bytes) -> None:
        """Change the stored value of a secret while no server runs."""
        with sqlite3.connect(self.folder / "data" / "store.sqlite") as store:
            key = f"/registry/secrets/default/{name}"
            self.assertEqual(store.execute("UPDATE log SET value = ? WHERE key = ?", (value, key)).rowcount, 1)
        store.close()

    def check_files(self) -> Any:
        """Check the files for changes."""
        assert self.server is not None
        files = self.server._service.server.config.files
        files._apply_changes(files._changes())


class EncryptionTests(EncryptionCase):
    """Secrets with keys in the file."""

    async def test_not_in_plain(self) -> None:
        """The content of a secret is not readable in the files of the store; a ConfigMap is."""
        self.configure(provider("aesgcm", "one"), IDENTITY)
        await self.start()
        await self.put("db")
        maps = "/api/v1/namespaces/default/configmaps"
        await self.ask("POST", maps, {"metadata": {"name": "m"}, "data": {"colour": "ultramarine"}})
        self.assertEqual(await self.value("db"), VALUE)
        await self.stop()
        files = b"".join(path.read_bytes() for path in (self.folder / "data").glob("store.sqlite*"))
        for text, expected_in in ((VALUE, False), ("correct horse", False), ("password", False), ("ultramarine", True)):
            self.assertEqual(text.encode() in files, expected_in, text)
        self.assertIn(b"k8s:enc:aesgcm:v1:one:", files)
        await self.start()
        self.assertEqual(await self.value("db"), VALUE)

    async def test_rotation(self) -> None:
        """A secret that is replaced without changes is stored with the first key, once."""
        self.configure(IDENTITY)
        await self.start()
        first = await self.put("db")
        self.assertTrue(self.stored("db").startswith(b'{"kind":"Secret"'))
        self.configure(provider("secretbox", "new"), IDENTITY)
        await self.start()
        code, secret = await self.ask("GET", f"{SECRETS}/db")
        self.assertEqual((code, int(secret["metadata"]["resourceVersion"])), (200, first))
        versions = []
        for _ in range(3):
            code, secret = await self.ask("PUT", f"{SECRETS}/db", secret)
            self.assertEqual(code, 200)
            versions.append(int(secret["metadata"]["resourceVersion"]))
        self.assertTrue(first < versions[0])
        self.assertEqual(versions, [versions[0]] * 3)
        self.assertTrue(self.stored("db").startswith(b"k8s:enc:secretbox:v1:new:"))
        self.assertNotIn(VALUE.encode(), self.stored("db"))
        self.configure(provider("aescbc", "newer"), provider("secretbox", "new"))
        await self.start()
        for path, body in ((f"{SECRETS}/db?dryRun=All", secret), (f"{SECRETS}/db", secret)):
            self.assertEqual((await self.ask("PUT", path, body))[0], 200)
        self.assertEqual(len(self.rows("/registry/secrets/default/db")), 3)
        self.assertTrue(self.stored("db").startswith(b"k8s:enc:aescbc:v1:newer:"))
        self.configure(provider("aescbc", "newer"))
        await self.start()
        self.assertEqual(await self.value("db"), VALUE)

    async def test_unknown_key(self) -> None:
        """A secret with an unknown key is reported as unreadable and cannot be replaced; other secrets are served."""
        self.configure(provider("aesgcm", "one"))
        await self.start()
        await self.put("lost")
        self.configure(provider("aesgcm", "two"), provider("aesgcm", "one"))
        await self.start()
        await self.put("kept")
        self.configure(provider("aesgcm", "two"))
        await self.start()
        message = (
            'Internal error occurred: unable to transform key "/registry/secrets/default/lost": '
            "no matching key was found for the provided AES transformer"
        )
        self.assertEqual([await self.value("kept"), await self.value("lost")], [VALUE, (500, message)])
        self.assertEqual((await self.ask("GET", f"{SECRETS}/none"))[0], 404)
        for path in (SECRETS, f"{SECRETS}?limit=1", "/api/v1/secrets", f"{SECRETS}?resourceVersion=0"):
            code, status = await self.ask("GET", path)
            self.assertEqual((code, status["reason"], status["message"]), (500, "InternalError", message), path)
        self.assertEqual((await self.ask("GET", "/api/v1/namespaces/kube-system/secrets"))[0], 200)
        self.assertEqual((await self.ask("GET", f"{SECRETS}?watch=1"))[0], 429)
        secret = {"metadata": {"name": "lost"}, "data": {}}
        for method, path, expected in (
            ("POST", SECRETS, 409),
            ("PUT", f"{SECRETS}/lost", 500),
            ("DELETE", f"{SECRETS}/lost", 500),
        ):
            self.assertEqual((await self.ask(method, path, secret if method != "DELETE" else None))[0], expected)
        self.assertEqual((await self.ask("PUT", f"{SECRETS}/kept", {**secret, "metadata": {"name": "kept"}}))[0], 200)
        self.configure(provider("aesgcm", "two"), provider("aesgcm", "one"))
        await self.start()
        self.assertEqual(await self.value("lost"), VALUE)

    async def test_tampered(self) -> None:
        """A stored secret that was modified or moved is refused with its key."""
        self.configure(provider("aesgcm", "one"), IDENTITY)
        await self.start()
        for name in ("a", "b"):
            await self.put(name)
        await self.stop()
        self.damage("b", self.stored("a"))
        await self.start()
        message = 'unable to transform key "/registry/secrets/default/b": cipher: message authentication failed'
        self.assertEqual(
            [await self.value("a"), await self.value("b")], [VALUE, (500, f"Internal error occurred: {message}")]
        )

    async def test_without_configuration(self) -> None:
        """Without the flag, the error states that the value is encrypted."""
        self.configure(provider("aesgcm", "one"))
        await self.start()
        await self.put("db")
        self.path.unlink()
        await self.start("--encryption-provider-config=")
        self.assertEqual(
            await self.value("db"),
            (
                500,
                'Internal error occurred: unable to transform key "/registry/secrets/default/db": identity transformer '
                "tried to read encrypted data",
            ),
        )

    async def test_everything(self) -> None:
        """All resources can be encrypted, including custom ones, and are readable after a restart."""
        self.configure(provider("aesgcm", "one"), resources=("*.*",))
        await self.start("--controllers=*")
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        names = {"plural": "swans", "kind": "Swan"}
        spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        swan = {"apiVersion": "example.com/v1", "kind": "Swan", "metadata": {"name": "s"}}
        await self.ask("POST", definitions, {"metadata": {"name": "swans.example.com"}, "spec": spec})
        code = 404
        while code == 404:  # Until the names are accepted.
            code, created = await self.ask("POST", "/apis/example.com/v1/swans", swan)
        self.assertEqual(code, 201, created)
        await self.start()
        self.assertEqual((await self.ask("GET", "/apis/example.com/v1/swans/s"))[0], 200)
        with sqlite3.connect(self.folder / "data" / "store.sqlite") as store:
            rows = store.execute("SELECT key, value FROM log WHERE value IS NOT NULL").fetchall()
        store.close()
        keys = {key for key, _ in rows}
        self.assertLessEqual({"/registry/example.com/swans/s", "/registry/namespaces/default"}, keys)
        plain = [key for key, value in rows if not bytes(value).startswith(b"k8s:enc:aesgcm:v1:one:")]
        self.assertEqual(
            [key for key in plain if not key.startswith(("/registry/ranges", "/registry/masterleases"))], []
        )

    async def test_invalid_file(self) -> None:
        """An invalid file prevents the start; the error does not quote it."""
        self.configure({"aesgcm": {"keys": [{"name": "one", "secret": "hunter2"}]}})
        error = await self.assertFailure(deferredStart(self), StartError)
        self.assertEqual(
            str(error),
            "--encryption-provider-config: error while parsing file: resources[0].providers[0].aesgcm.keys[0].secret: "
            'Invalid value: "REDACTED": secrets must be base64 encoded',
        )

    async def test_no_health_check(self) -> None:
        """Without services and reloads there is no health check."""
        self.configure(provider("aesgcm", "one"))
        await self.start()
        for path in ("readyz", "healthz"):
            self.assertEqual((await self.ask("GET", f"/{path}/kms-providers"))[0], 404)


def deferredStart(case: EncryptionCase) -> Any:
    """Start a server."""
    from twisted.internet.defer import Deferred

    return Deferred.fromCoroutine(case.start())


class ReloadTests(EncryptionCase):
    """Reloaded encryption configurations."""

    FLAG = "--encryption-provider-config-automatic-reload"

    async def test_reload(self) -> None:
        """New keys are used without a restart; an invalid file is ignored."""
        self.configure(provider("aesgcm", "one"))
        await self.start(self.FLAG)
        await self.put("a")
        self.configure(provider("aesgcm", "two"), provider("aesgcm", "one"))
        self.check_files()
        await self.put("b")
        self.assertTrue(self.stored("a").startswith(b"k8s:enc:aesgcm:v1:one:"))
        self.assertTrue(self.stored("b").startswith(b"k8s:enc:aesgcm:v1:two:"))
        _, listed = await self.ask("GET", SECRETS)
        for secret in listed["items"]:
            self.assertEqual((await self.ask("PUT", f"{SECRETS}/{secret['metadata']['name']}", secret))[0], 200)
        self.assertTrue(self.stored("a").startswith(b"k8s:enc:aesgcm:v1:two:"))
        self.path.write_text("bad")
        self.check_files()
        await self.put("c")
        self.assertTrue(self.stored("c").startswith(b"k8s:enc:aesgcm:v1:two:"))

    async def test_health_check(self) -> None:
        """There are a health check, except for /livez, and a hook."""
        self.configure(IDENTITY)
        await self.start(self.FLAG)
        for path, expected_in in (("healthz", True), ("readyz", True), ("livez", False)):
            code, lines = await self.ask("GET", f"/{path}?verbose")
            self.assertEqual((code, "[+]kms-providers ok" in lines), (200, expected_in), lines)
            self.assertIn("[+]poststarthook/start-encryption-provider-config-automatic-reload ok", lines)

    async def test_not_reloaded(self) -> None:
        """Without the flag the file is read once."""
        self.configure(provider("aesgcm", "one"))
        await self.start()
        self.configure(provider("aesgcm", "two"))
        self.check_files()
        await self.put("a")
        self.assertTrue(self.stored("a").startswith(b"k8s:enc:aesgcm:v1:one:"))


class ServiceTests(EncryptionCase):
    """Secrets with keys of a key management service."""

    def setUp(self) -> None:
        """Create a service."""
        super().setUp()
        self.plugin = KMSPlugin(self.folder / "kms")
        self.addCleanup(self.plugin.stop)

    def service(self, timeout: str = "30s") -> dict[str, Any]:
        """Return the provider of the service."""
        return {"kms": {"apiVersion": "v2", "name": "foo", "endpoint": self.plugin.endpoint, "timeout": timeout}}

    async def test_service(self) -> None:
        """One key of the service encrypts many secrets; after a restart it is decrypted once."""
        self.plugin.start()
        self.configure(self.service(), IDENTITY)
        await self.start()
        for name in ("a", "b", "c"):
            await self.put(name)
            self.assertTrue(self.stored(name).startswith(b"k8s:enc:kms:v2:foo:"))
        self.assertEqual(self.plugin.calls, ["status", "encrypt key-1"])
        self.assertEqual((await self.ask("GET", "/readyz/kms-providers"))[0], 200)
        await self.start()
        self.assertEqual(await self.value("c"), VALUE)
        self.assertEqual(self.plugin.calls[2:], ["status", "encrypt key-1", "decrypt key-1"])

    async def test_counted(self) -> None:
        """Metrics count values by resource and prefix, calls of the service, and its keys."""
        self.plugin.start()
        self.configure(self.service(), IDENTITY)
        await self.start()
        await self.put("a")
        await self.start()
        self.assertEqual(await self.value("a"), VALUE)
        _, text = await self.ask("GET", "/metrics")
        lines = text.splitlines()
        prefix = "k8s:enc:kms:v2:foo:"
        labels = f'resource="secrets",transformation_type="from_storage",transformer_prefix="{prefix}",status="OK"'
        (line,) = [one for one in lines if one.startswith("apiserver_storage_transformation_operations_total{")]
        self.assertIn(labels, line)
        digest = key_id_hash("key-1")
        used = f'transformation_type="from_storage",provider_name="foo",key_id_hash="{digest}",apiserver_id_hash=""'
        self.assertTrue(
            any(one.startswith(f"apiserver_envelope_encryption_key_id_hash_total{{{used}}}") for one in lines)
        )
        for method in ("Status", "Encrypt", "Decrypt"):
            labels = f'provider_name="foo",method_name="/v2.KeyManagementService/{method}",grpc_status_code="OK"'
            self.assertIn(f"apiserver_envelope_encryption_kms_operations_latency_seconds_count{{{labels}}} 1", lines)
        self.assertNotIn("key-1", text)

    async def test_new_key(self) -> None:
        """With a new key of the service, secrets that are replaced without changes are encrypted with it."""
        self.plugin.start()
        self.configure(self.service())
        await self.start()
        await self.put("a")
        self.plugin.key_id = "key-2"
        await self.start()
        code, secret = await self.ask("GET", f"{SECRETS}/a")
        code, changed = await self.ask("PUT", f"{SECRETS}/a", secret)
        self.assertEqual(code, 200)
        self.assertNotEqual(changed["metadata"]["resourceVersion"], secret["metadata"]["resourceVersion"])
        self.plugin.lost.add("key-1")
        await self.start()
        self.assertEqual(await self.value("a"), VALUE)

    async def test_lost_key(self) -> None:
        """Secrets with a lost key are reported as unreadable; other secrets are served."""
        self.plugin.start()
        self.configure(self.service())
        await self.start()
        await self.put("a")
        self.plugin.key_id = "key-2"
        await self.start()
        await self.put("b")
        self.plugin.lost.add("key-1")
        await self.start()
        message = (
            'Internal error occurred: unable to transform key "/registry/secrets/default/a": failed to decrypt DEK, '
            "error: rpc error: code = NotFound desc = key-1 is lost"
        )
        self.assertEqual([await self.value("a"), await self.value("b")], [(500, message), VALUE])

    async def test_unavailable_service(self) -> None:
        """
        Without its service the server starts: secrets are unavailable, other resources are served, and /readyz fails.
        """
        self.plugin.start()
        self.configure(self.service())
        await self.start()
        await self.put("a")
        await self.stop()
        self.plugin.stop()
        self.configure(self.service("100ms"))
        await self.start()
        message = "got unexpected nil transformer"
        named = f'Internal error occurred: unable to transform key "/registry/secrets/default/a": {message}'
        for path in (f"{SECRETS}/a", SECRETS):
            code, status = await self.ask("GET", path)
            self.assertEqual((code, status["message"]), (500, named))
        code, status = await self.ask("POST", SECRETS, {"metadata": {"name": "b"}})
        self.assertEqual((code, status["message"]), (500, f"Internal error occurred: {message}"))
        self.assertEqual((await self.ask("GET", f"{SECRETS}?watch=1"))[0], 429)
        maps = "/api/v1/namespaces/default/configmaps"
        self.assertEqual((await self.ask("POST", maps, {"metadata": {"name": "m"}}))[0], 201)
        code, text = await self.ask("GET", "/readyz")
        self.assertIn(
            "[-]kms-providers failed: reason withheld", text if isinstance(text, str) else orjson.dumps(text).decode()
        )
        self.assertEqual((await self.ask("GET", "/livez"))[0], 200)
        self.plugin.start()
        assert self.server is not None
        while (await self.ask("GET", f"{SECRETS}/a"))[0] != 200:
            self.server.advance_time(10)
        self.assertEqual(await self.value("a"), VALUE)
        await self.put("b")
        self.assertEqual((await self.ask("GET", "/readyz"))[0], 200)

    async def test_reload(self) -> None:
        """A file with a new service is used when the service is healthy."""
        self.configure(provider("aesgcm", "one"))
        await self.start("--encryption-provider-config-automatic-reload")
        await self.put("a")
        self.plugin.start()
        self.configure(self.service(), provider("aesgcm", "one"))
        self.check_files()
        assert self.server is not None
        encryption = self.server._service.server.config.encryption
        while not encryption.has_services:
            await self.ask("GET", "/version")
        await self.put("b")
        self.assertTrue(self.stored("b").startswith(b"k8s:enc:kms:v2:foo:"))
        self.assertEqual(await self.value("a"), VALUE)
