"""Tests that metrics have the names, types and labels of kube-apiserver, for dashboards and alerts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final
from urllib.request import Request, urlopen

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from kubetwist.testing._connection import Connection
from kubetwist.testing.trial import KubeAPIMixin

#: Lines with name, type and labels of kube-apiserver's metrics. A star marks metrics that exist after this test.
REFERENCE: Final = Path(__file__).with_name("reference.txt")
_SAMPLE: Final = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? \S+")
_LABEL: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="(?:[^"\\]|\\.)*"')
_PARTS: Final = re.compile("_(?:bucket|sum|count)$")


def families(text: str) -> dict[str, tuple[str, frozenset[str]]]:
    """Return type and labels of the metrics in a text, by name."""
    kinds = {line.split()[2]: line.split()[3] for line in text.splitlines() if line.startswith("# TYPE ")}
    labels: dict[str, set[str]] = {}
    for line in text.splitlines():
        match = None if line.startswith("#") else _SAMPLE.fullmatch(line)
        if match is not None:
            name = match[1] if match[1] in kinds else _PARTS.sub("", match[1])
            labels.setdefault(name, set()).update(_LABEL.findall(match[2] or ""))
    return {name: (kind, frozenset(labels.get(name, ())) - {"le"}) for name, kind in kinds.items()}


def reference() -> dict[str, tuple[str, frozenset[str]]]:
    """Return type and labels of kube-apiserver's metrics, by name."""
    lines = [line.removeprefix("* ").split() for line in REFERENCE.read_text().splitlines()]
    return {name: (kind, frozenset(labels)) for name, kind, *labels in lines}


def read(connection: Connection, path: str) -> bytes:
    """Read a watch response to its end."""
    headers = {"Authorization": f"Bearer {connection.token}"}
    request = Request(connection.url + path, headers=headers)
    with urlopen(request, context=connection.ssl_context(), timeout=30) as response:
        content: bytes = response.read()
    return content


def expected() -> set[str]:
    """Return the names of metrics that must exist after the test."""
    return {line.split()[1] for line in REFERENCE.read_text().splitlines() if line.startswith("* ")}


class NamesTests(KubeAPIMixin, TestCase):
    """Metrics of a server after requests."""

    timeout = 120

    async def test_as_reference(self) -> None:
        """
        Metrics with the name of a kube-apiserver metric have its type and labels, and no expected metric is missing.
        """
        server = await self.startKubeAPI("--controllers=namespace-controller")

        async def ask(method: str, path: str, body: Any = None, token: str | None = None) -> Any:
            connection = server.connection if token is None else server.connection.with_token(token)
            code, response = await deferToThread(connection.request, method, path, body)
            self.assertLess(code, 300, response)
            return response

        default = "/api/v1/namespaces/default"
        await ask("POST", "/api/v1/namespaces", {"metadata": {"name": "a"}})
        await ask("DELETE", "/api/v1/namespaces/a")
        service = {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
        await ask("POST", f"{default}/services?fieldValidation=Strict", service)
        await ask("POST", f"{default}/serviceaccounts", {"metadata": {"name": "m"}})
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = (await ask("POST", f"{default}/serviceaccounts/m/token", asked))["status"]["token"]
        await ask("GET", "/apis", token=token)
        pod = {
            "metadata": {"name": "p"},
            "spec": {"serviceAccountName": "m", "containers": [{"name": "c", "image": "i"}]},
        }
        await ask("POST", f"{default}/pods", pod)
        await ask("GET", f"{default}/endpoints")
        spec = {
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
                ]
            },
            "validations": [{"expression": "true"}],
        }
        registration = "/apis/admissionregistration.k8s.io/v1"
        await ask("POST", f"{registration}/validatingadmissionpolicies", {"metadata": {"name": "p"}, "spec": spec})
        binding = {"metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}}
        await ask("POST", f"{registration}/validatingadmissionpolicybindings", binding)
        await server.settle()
        await ask("POST", f"{default}/configmaps", {"metadata": {"name": "c"}})
        initial = "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
        await deferToThread(read, server.connection, f"{default}/configmaps?watch=true&timeoutSeconds=1&{initial}")
        served = families(await ask("GET", "/metrics"))
        known = reference()
        for name, found in served.items():
            if name in known:
                self.assertEqual(found, known[name], name)
        self.assertEqual(expected() - served.keys(), set())
