"""Tests for an extension server in a separate process, registered by an APIService, with kubectl."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kubetwist.testing import SubprocessServer

from .browser import Page
from .conftest import Kubectl
from .test_controllers import PATIENCE, wait_for

APISERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
GROUP = "/apis/fun.example.com/v1"
SERVER = """
from kubetwist.extension import ExtensionOptions, Resource, make_service

TEXT = {"type": "object", "properties": {"text": {"type": "string", "minLength": 1}}}
COLUMNS = [{"name": "Text", "type": "string", "jsonPath": ".spec.text"}]
ABOUT = {"group": "fun.example.com", "version": "v1"}


def look(namespace, user):
    yield {"metadata": {"name": "me"}, "user": user.name, "groups": sorted(user.groups)}


FORTUNES = Resource(
    **ABOUT, kind="Fortune", plural="fortunes", short_names=["fo"], schema={"spec": TEXT}, columns=COLUMNS
)
VISITORS = Resource(
    **ABOUT,
    kind="Visitor",
    plural="visitors",
    namespaced=False,
    schema={"user": {"type": "string"}, "groups": {"type": "array", "items": {"type": "string"}}},
    compute=look,
)


class Options(ExtensionOptions):
    command = "fun"


def makeService(options):
    return make_service(options, [FORTUNES, VISITORS])
"""
DROP_IN = """
from twisted.application.service import ServiceMaker

fun = ServiceMaker("fun", "funserver", "Tells fortunes.", "fun")
"""


class ExtensionProcess:
    """The process of C{twist fun}, which can be killed and restarted on the same port."""

    def __init__(self, folder: Path, kubeconfig: Path) -> None:
        (folder / "twisted" / "plugins").mkdir(parents=True)
        (folder / "funserver.py").write_text(SERVER)
        (folder / "twisted" / "plugins" / "fun_plugin.py").write_text(DROP_IN)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.folder = folder
        self.kubeconfig = kubeconfig
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start, and wait until it is ready."""
        path = os.pathsep.join(filter(None, (str(self.folder), os.environ.get("PYTHONPATH", ""))))
        arguments = [f"--secure-port={self.port}", f"--data-dir={self.folder / 'data'}", "--service=default/fun"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "twisted", "fun", *arguments, f"--kubeconfig={self.kubeconfig}"],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if line.endswith("#info] ready\n"):
                return
        raise AssertionError("".join(lines))

    def end(self, number: int) -> None:
        """Send a signal, and wait for the end of the process."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.communicate()
            self.process = None

    @property
    def authority(self) -> str:
        """Return the CA of its certificate, for an APIService."""
        return base64.b64encode((self.folder / "data" / "pki" / "ca.crt").read_bytes()).decode()


@pytest.fixture
def front(start_server: Callable[..., SubprocessServer]) -> SubprocessServer:
    """The server in front, which may connect to this machine."""
    return start_server("--controllers=", "--allow-loopback-proxy")


@pytest.fixture
def extension(front: SubprocessServer, tmp_path: Path) -> Iterator[ExtensionProcess]:
    """The extension server, registered and available."""
    process = ExtensionProcess(tmp_path, front.kubeconfig)
    try:
        process.start()
        spec = {"type": "ExternalName", "externalName": "localhost"}
        service = {"metadata": {"name": "fun"}, "spec": spec}
        code, answer = front.request("POST", "/api/v1/namespaces/default/services", service)
        assert code == 201, answer
        registration = {
            "group": "fun.example.com",
            "version": "v1",
            "groupPriorityMinimum": 1000,
            "versionPriority": 15,
            "service": {"namespace": "default", "name": "fun", "port": process.port},
            "caBundle": process.authority,
        }
        obj = {"metadata": {"name": "v1.fun.example.com"}, "spec": registration}
        code, answer = front.request("POST", APISERVICES, obj)
        assert code == 201, answer
        wait_until_available(front)
        yield process
    finally:
        process.end(signal.SIGTERM)


def wait_until_available(front: SubprocessServer) -> Any:
    """Wait until the APIService is available; return it."""

    def enough(obj: Any) -> bool:
        found = {one["type"]: one["status"] for one in (obj.get("status") or {}).get("conditions") or ()}
        return obj["metadata"]["name"] == "v1.fun.example.com" and found.get("Available") == "True"

    return wait_for(front, APISERVICES, enough)


@pytest.mark.kubectl
def test_kubectl(front: SubprocessServer, extension: ExtensionProcess, home: Path) -> None:
    """kubectl discovers and explains the resources, and creates, shows, changes, watches and deletes objects."""
    kubectl = Kubectl(front.kubeconfig, "default", home / "extension")
    listed = kubectl("api-resources", "--api-group=fun.example.com")
    assert "fortunes" in listed
    assert "visitors" in listed
    # The documents of other servers are fetched when they become available.
    deadline = time.monotonic() + PATIENCE
    while "apis/fun.example.com/v1" not in str(front.request("GET", "/openapi/v3")[1]):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert "text\t<string>" in kubectl("explain", "fortunes.spec")
    manifest = {"apiVersion": "fun.example.com/v1", "kind": "Fortune", "metadata": {"name": "a"}}
    kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps({**manifest, "spec": {"text": "hello"}}))
    rows = kubectl("get", "fo").splitlines()
    assert [row.split() for row in rows] == [["NAME", "TEXT"], ["a", "hello"]]
    refused = kubectl.run("apply", "--server-side", "-f", "-", stdin=json.dumps({**manifest, "spec": {"text": ""}}))
    assert refused.returncode == 1
    assert "spec.text" in refused.stderr
    kubectl("patch", "fo", "a", "--type=merge", "-p", '{"spec": {"text": "bye"}}')
    assert kubectl("get", "fo", "a", "-o", "jsonpath={.spec.text}") == "bye"
    kubectl("delete", "fo", "a")
    assert "NotFound" in kubectl.run("get", "fo", "a").stderr


@pytest.mark.kubectl
def test_users(front: SubprocessServer, extension: ExtensionProcess, home: Path) -> None:
    """The extension server gets the identity of users and of impersonated users, which clients cannot forge."""
    kubectl = Kubectl(front.kubeconfig, "default", home / "extension")
    me = kubectl.object("visitors", "me")
    assert me["user"] == "kubernetes-admin"
    assert "system:masters" in me["groups"]
    me = kubectl.object("visitors", "me", "--as=jane", "--as-group=system:masters")
    assert (me["user"], "system:masters" in me["groups"]) == ("jane", True)
    request = urllib.request.Request(f"{front.url}{GROUP}/visitors/me")
    for name, value in (("Authorization", f"Bearer {front.token}"), ("X-Remote-User", "mallory")):
        request.add_header(name, value)
    with urllib.request.urlopen(request, context=front.connection.ssl_context()) as answer:
        assert json.load(answer)["user"] != "mallory"


def test_page(front: SubprocessServer, extension: ExtensionProcess, browser: Any) -> None:
    """The web page shows objects of the extension server like built-in ones: in tables, live if they can be watched."""
    page = Page(browser, front.url)
    page.sign_in(front.token)
    # Anonymous requests are refused here: the page finds out once, and does not keep asking who the user is.
    loaded = "performance.getEntriesByType('resource')"
    asked = f"return {loaded}.filter((one) => one.name.endsWith('/selfsubjectreviews')).length"
    assert page.run(asked) == 2
    page.until(lambda: page.all(".side a[href='#/list/fun.example.com/fortunes']"))
    page.open("#/list/fun.example.com/fortunes")
    page.reads("No fortunes here.")
    about = {"apiVersion": "fun.example.com/v1", "kind": "Fortune"}
    fortune = {**about, "metadata": {"name": "a"}, "spec": {"text": "hello"}}
    path = f"{GROUP}/namespaces/default/fortunes"
    assert front.request("POST", path, fortune)[0] == 201
    page.until(lambda: page.rows() == [["default", "a", "hello"]])
    patch = {"spec": {"text": "bye"}}
    front.request("PATCH", f"{path}/a", patch, content_type="application/merge-patch+json")
    page.until(lambda: page.rows() == [["default", "a", "bye"]])
    page.open("#/object/fun.example.com/fortunes/default/a")
    page.reads("bye", ".details")
    page.open("#/object/fun.example.com/fortunes/default/a/yaml")
    page.reads("text: bye", ".yaml")
    # These objects are not stored, and cannot be watched.
    page.open("#/list/fun.example.com/visitors")
    page.until(lambda: [row[0] for row in page.rows()] == ["me"])
    assert page.all(".problem") == []


def test_killed(front: SubprocessServer, extension: ExtensionProcess) -> None:
    """
    When it is killed, its watches end and its requests fail, everything else continues, and it is used again after its
    restart.
    """
    request = urllib.request.Request(f"{front.url}{GROUP}/fortunes?watch=true")
    request.add_header("Authorization", f"Bearer {front.token}")
    with urllib.request.urlopen(request, context=front.connection.ssl_context(), timeout=60) as watch:
        extension.end(signal.SIGKILL)
        with pytest.raises(Exception, match=r"IncompleteRead|reset|EOF"):
            watch.read()
    code, answer = front.request("GET", f"{GROUP}/fortunes")
    assert code == 503, answer
    assert front.request("GET", "/api/v1/namespaces")[0] == 200
    extension.start()
    assert front.request("GET", f"{GROUP}/fortunes")[0] == 200
