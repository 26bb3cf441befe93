"""Tests for L{kubetwist.server.hardenedfiles} and all settings of C{--hardened}, over HTTP."""

from __future__ import annotations

import http.client
import json
import ssl
from pathlib import Path
from typing import Any

import yaml

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread

from kubetwist.server.errors import StartError
from kubetwist.testing._inprocess import InProcessServer

from .test_encryption import VALUE, EncryptionCase

ROLE = {
    "metadata": {"name": "writer"},
    "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}],
}
BINDING = {
    "metadata": {"name": "writer"},
    "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"}],
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "writer"},
}
MAPS = "/api/v1/namespaces/default/configmaps"
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"


class HardenedCase(EncryptionCase):
    """Base of tests that start servers on one data directory."""

    async def start(self, *flags: str) -> None:
        """Start a server, after stopping the previous one."""
        await self.stop()
        server = InProcessServer("--storage-backend=sqlite", *flags, data_dir=self.folder / "data", controllers="")
        self.addCleanup(server.stop)
        self.server = await server.start()

    @property
    def files(self) -> Path:
        """Return the folder of the files of the profile."""
        return self.folder / "data" / "hardened"

    async def send(
        self, method: str, path: str, body: Any = None, context: ssl.SSLContext | None = None, **headers: str
    ) -> tuple[int, str]:
        """Send a request with headers in addition to, or instead of, the administrator's token."""
        assert self.server is not None
        connection = self.server.connection
        context = context or connection.ssl_context()
        fields = {name.replace("_", "-"): value for name, value in headers.items() if value}
        if "Authorization" not in headers:
            fields["Authorization"] = f"Bearer {connection.token}"

        def send() -> tuple[int, str]:
            client = http.client.HTTPSConnection("127.0.0.1", connection.port, context=context, timeout=60)
            try:
                client.request(
                    method,
                    path,
                    None if body is None else json.dumps(body),
                    {"Content-Type": "application/json", **fields},
                )
                response = client.getresponse()
                return response.status, response.read().decode()
            finally:
                client.close()

        return await deferToThread(send)


class HardenedTests(HardenedCase):
    """A server with the flag."""

    async def test_settings(self) -> None:
        """Each setting of the profile has an effect on requests."""
        await self.start("--hardened")
        for path, code in (("/livez", 200), ("/readyz", 200), ("/healthz", 200), ("/version", 401), ("/api", 401)):
            self.assertEqual((await self.send("GET", path, Authorization=""))[0], code, path)
        self.assertEqual((await self.send("GET", "/debug/pprof/"))[0], 404)

        assert self.server is not None
        old = self.server.connection.ssl_context()
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        failure = await self.assertFailure(
            Deferred.fromCoroutine(self.send("GET", "/livez", context=old)), ssl.SSLError
        )
        self.assertIn("version", str(failure).lower())

        service = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], "externalIPs": ["192.0.2.1"]}}
        code, text = await self.send("POST", "/api/v1/namespaces/default/services", service)
        self.assertEqual(code, 403, text)
        self.assertIn("Use of external IPs is denied", text)

        spec = {"containers": [{"name": "c", "image": "i"}], "hostNetwork": True}
        pod = {"metadata": {"name": "p"}, "spec": {**spec, "automountServiceAccountToken": False}}
        await self.send("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        code, text = await self.send("POST", "/api/v1/namespaces/default/pods", pod)
        self.assertEqual(code, 403, text)
        self.assertIn("baseline", text)

        node = {"Impersonate_User": "system:node:one", "Impersonate_Group": "system:nodes"}
        code, text = await self.send("POST", "/api/v1/nodes", {"metadata": {"name": "two"}}, **node)
        self.assertEqual(code, 403, text)
        self.assertIn("is not allowed to modify node", text)

        await self.send("POST", f"{RBAC}/roles", ROLE)
        await self.send("POST", f"{RBAC}/rolebindings", BINDING)
        owner = json.loads((await self.send("POST", MAPS, {"metadata": {"name": "owner"}}))[1])
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
        reference["blockOwnerDeletion"] = True
        owned = {"metadata": {"name": "owned", "ownerReferences": [reference]}}
        code, text = await self.send("POST", MAPS, owned, Impersonate_User="alice")
        self.assertEqual(code, 403, text)
        self.assertIn("cannot set blockOwnerDeletion", text)

    async def test_default(self) -> None:
        """Without the flag, the same requests are answered as by kube-apiserver, and there are no files."""
        await self.start()
        self.assertEqual((await self.send("GET", "/version", Authorization=""))[0], 200)
        service = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], "externalIPs": ["192.0.2.1"]}}
        self.assertEqual((await self.send("POST", "/api/v1/namespaces/default/services", service))[0], 201)
        self.assertFalse(self.files.exists())

    async def test_audit(self) -> None:
        """The audit log has a request for a Secret, without its content, and no health checks."""
        await self.start("--hardened")
        await self.put("db")
        await self.send("GET", "/livez")
        await self.stop()
        log = (self.files / "audit.log").read_text()
        self.assertNotIn(VALUE, log)
        events = [json.loads(line) for line in log.splitlines()]
        self.assertIn(("create", "Metadata"), [(one["verb"], one["level"]) for one in events])
        self.assertNotIn("/livez", [one["requestURI"] for one in events])

    async def test_existing_data(self) -> None:
        """Secrets of earlier starts are encrypted when the server is ready; a later start uses the same key."""
        await self.start()
        await self.put("old")
        self.assertIn(b'"kind":"Secret"', self.stored("old"))
        await self.start("--hardened")
        self.assertTrue(self.stored("old").startswith(b"k8s:enc:secretbox:v1:key1:"))
        self.assertEqual(await self.value("old"), VALUE)
        await self.put("new")
        self.assertTrue(self.stored("new").startswith(b"k8s:enc:secretbox:v1:key1:"))
        rows = len(self.rows("/registry/secrets/default/old"))
        await self.start("--hardened")
        self.assertEqual((await self.value("old"), await self.value("new")), (VALUE, VALUE))
        self.assertEqual(len(self.rows("/registry/secrets/default/old")), rows)

    async def test_files(self) -> None:
        """The files are readable for their owner only, and changes of them are kept."""
        await self.start("--hardened")
        for path in (self.files / "encryption.yaml", self.files / "audit-policy.yaml", self.files / "audit.log"):
            self.assertEqual(path.stat().st_mode & 0o077, 0, path)
        policy = self.files / "audit-policy.yaml"
        changed = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "None"}]}
        policy.write_text(yaml.safe_dump(changed))
        await self.start("--hardened")
        self.assertEqual(yaml.safe_load(policy.read_text()), changed)

    async def test_rotation(self) -> None:
        """A key that is put first encrypts all Secrets at the next start, and the old key is not needed any more."""
        await self.start("--hardened")
        await self.put("db")
        await self.stop()
        path = self.files / "encryption.yaml"
        configuration = yaml.safe_load(path.read_text())
        keys = configuration["resources"][0]["providers"][0]["secretbox"]["keys"]
        keys.insert(0, {"name": "key2", "secret": keys[0]["secret"][::-1].replace("=", "") + "="})
        path.write_text(yaml.safe_dump(configuration))
        await self.start("--hardened")
        self.assertTrue(self.stored("db").startswith(b"k8s:enc:secretbox:v1:key2:"))
        await self.stop()
        del keys[1]
        path.write_text(yaml.safe_dump(configuration))
        await self.start("--hardened")
        self.assertEqual(await self.value("db"), VALUE)

    async def test_own_files(self) -> None:
        """Files that are given replace the ones of the profile; files that weaken it are refused."""
        self.configure({"aescbc": {"keys": [{"name": "mine", "secret": "MDEyMzQ1Njc4OWFiY2RlZg=="}]}})
        log = self.folder / "mine.log"
        await self.start("--hardened", f"--encryption-provider-config={self.path}", f"--audit-log-path={log}")
        await self.put("db")
        self.assertTrue(self.stored("db").startswith(b"k8s:enc:aescbc:v1:mine:"))
        self.assertEqual([one.name for one in self.files.iterdir()], ["audit-policy.yaml"])
        await self.stop()

        head = {"apiVersion": "apiserver.config.k8s.io/v1"}
        file = self.folder / "weaker.yaml"
        anonymous = {**head, "kind": "AuthenticationConfiguration", "anonymous": {"enabled": True}}
        security = {
            "apiVersion": "pod-security.admission.config.k8s.io/v1",
            "kind": "PodSecurityConfiguration",
            "defaults": {"enforce": "privileged"},
        }
        admission = {
            **head,
            "kind": "AdmissionConfiguration",
            "plugins": [{"name": "PodSecurity", "configuration": security}],
        }
        for flag, content in (("authentication-config", anonymous), ("admission-control-config-file", admission)):
            file.write_text(yaml.safe_dump(content))
            failure = await self.assertFailure(
                Deferred.fromCoroutine(self.start("--hardened", f"--{flag}={file}")), StartError
            )
            self.assertIn("--hardened", str(failure))
