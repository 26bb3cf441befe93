"""Tests for the fixtures C{kopf_operator} and C{webhook_server}, and for the page about them, as users run them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from .pages import run_pytest

DOCS = Path(os.environ.get("KUBETWIST_TEST_DOCS") or Path(__file__).parents[2] / "docs")
PAGE = (DOCS / "testing-operators.md").read_text("utf-8")
#: The files of the page by their names: tests, and what they need.
FILES = dict(re.findall(r"```(?:python|yaml)\n# (\w+\.(?:py|yaml))\n(.*?)```", PAGE, re.DOTALL))

OPERATOR = """
import kopf
from kubernetes import client


@kopf.on.login()
def login(**_):
    raise kopf.PermanentError("login handlers are not called")


@kopf.on.create("configmaps", labels={"copy": "yes"})
def copy(name, namespace, body, logger, **_):
    logger.info("copying %s", name)
    # The default configuration of the library is the one of the connection.
    copied = {"metadata": {"name": f"{name}-copy"}, "data": body["data"]}
    client.CoreV1Api().create_namespaced_config_map(namespace, copied)
"""

KOPF = """
import asyncio
import os
import sys
import threading

import kopf
import pytest
from kubernetes import client

from kubetwist.testing.kopfoperator import OperatorNotReady

MINE = {"metadata": {"name": "mine", "labels": {"copy": "yes"}}, "data": {"k": "v"}}
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def test_file(kopf_operator, kube_api):
    before, host = os.environ.get("KUBECONFIG"), client.Configuration.get_default_copy().host
    for _ in range(2):
        with kopf_operator("copies.py", namespace="default") as operator:
            assert os.environ["KUBECONFIG"] == str(kube_api.kubeconfig)
            assert kube_api.request("POST", CONFIG_MAPS, MINE)[0] == 201
            kube_api.wait_for("configmaps/mine-copy", jsonpath="{.data.k}=v")
        # Each handler is called once, although the file was executed twice in this process.
        assert operator.output.count("copying mine") == 1
        assert operator.exception is None
        assert (os.environ.get("KUBECONFIG"), client.Configuration.get_default_copy().host) == (before, host)
        # It runs no longer, and its finalizers do not exist.
        for name in ("mine", "mine-copy"):
            assert kube_api.request("DELETE", f"{CONFIG_MAPS}/{name}")[0] == 200
        kube_api.wait_for("configmaps", absent=True, field_selector="metadata.name=mine")
    events = kube_api.request("GET", "/api/v1/namespaces/default/events")[1]["items"]
    assert [event for event in events if event["source"].get("component") == "kopf"] == []


def test_module(kopf_operator, kube_api):
    import handlers

    with kopf_operator() as operator:
        assert kube_api.request("POST", CONFIG_MAPS, MINE)[0] == 201
        kube_api.wait_for("configmaps/mine", jsonpath="{.data.seen}=yes")
    assert kube_api.request("DELETE", f"{CONFIG_MAPS}/mine")[0] == 200
    assert handlers.calls == ["mine"]
    with kopf_operator("handlers"):
        pass


def test_registry(kopf_operator, kube_api):
    registry, seen = kopf.OperatorRegistry(), threading.Event()

    @kopf.on.event("configmaps", registry=registry)
    def watch(event, name, **_):
        # The operator watches when the test goes on: the object was not there before.
        if name == "mine" and event["type"] == "ADDED":
            seen.set()

    with kopf_operator(registry=registry, namespace="default"):
        assert kube_api.request("POST", CONFIG_MAPS, MINE)[0] == 201
        assert seen.wait(20)
    assert kube_api.request("DELETE", f"{CONFIG_MAPS}/mine")[0] == 200


def test_startup_error(kopf_operator):
    registry = kopf.OperatorRegistry()

    @kopf.on.startup(registry=registry)
    def fail(**_):
        raise kopf.PermanentError("no database")

    operator = kopf_operator(registry=registry)
    with pytest.raises(Exception) as raised:
        operator.start()
    assert "failed permanently: no database" in raised.value.__notes__[0]
    assert not isinstance(raised.value, OperatorNotReady) and operator.exception is raised.value


def test_load_error(kopf_operator):
    with pytest.raises(FileNotFoundError, match="missing.py"):
        kopf_operator("missing.py").start()
    with pytest.raises(ModuleNotFoundError, match="missing_module"):
        kopf_operator("missing_module").start()


def test_not_ready(kopf_operator):
    registry, ends = kopf.OperatorRegistry(), threading.Event()

    @kopf.on.startup(registry=registry)
    async def wait(logger, **_):
        logger.info("waiting for a database")
        while not ends.is_set():
            await asyncio.sleep(0.01)

    operator = kopf_operator(registry=registry, timeout=0.5)
    with pytest.raises(OperatorNotReady, match="waiting for a database"):
        operator.start()
    ends.set()


def test_user(kopf_operator, kube_api):
    registry = kopf.OperatorRegistry()

    @kopf.on.event("configmaps", registry=registry)
    def watch(**_):
        pass

    alice = kube_api.connection.as_user("alice")
    operator = kopf_operator(registry=registry, connection=alice, timeout=3)
    with pytest.raises(OperatorNotReady, match="cannot list resource"):
        operator.start()


def test_stopped_at_the_end(kopf_operator):
    kopf_operator("copies.py", namespace="default").start()


def test_is_stopped():
    assert not [thread for thread in threading.enumerate() if thread.name == "kopf operator"]
"""

HANDLERS = """
import kopf

calls = []


@kopf.on.create("configmaps", labels={"copy": "yes"})
def see(name, patch, **_):
    calls.append(name)
    patch.setdefault("data", {})["seen"] = "yes"
"""

WEBHOOKS = """
import pytest

from kubetwist.testing.webhookservice import Denied, WebhookSetupError

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
CRD = '''
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true}
  - {name: v2, served: true, storage: false}
'''


def create(kube_api, name):
    return kube_api.request("POST", CONFIG_MAPS, {"metadata": {"name": name}})


def test_validating(webhook_server, kube_api):
    def no_bad_names(request):
        if request["name"] == "bad":
            raise Denied("bad names are not allowed", code=422)

    webhook = webhook_server.validating("configmaps", no_bad_names, operations=["CREATE"], namespace="default")
    code, status = create(kube_api, "bad")
    assert (code, status["message"].partition(": ")[2]) == (422, "bad names are not allowed")
    assert create(kube_api, "good")[0] == 201
    assert kube_api.request("DELETE", f"{CONFIG_MAPS}/good")[0] == 200
    # Controllers also create config maps.
    assert [request["name"] for request in webhook.requests if request["name"] != "kube-root-ca.crt"] == ["bad", "good"]
    assert webhook.requests[0]["userInfo"]["username"] == "kubetwist-test-admin"
    webhook.remove()
    assert create(kube_api, "bad")[0] == 201


def test_mutating(webhook_server, kube_api):
    def label(request):
        request["object"]["metadata"].setdefault("labels", {})["team"] = "mine"

    webhook_server.mutating("configmaps", label, namespace="default")
    assert create(kube_api, "labelled")[1]["metadata"]["labels"] == {"team": "mine"}


def test_removed(kube_api):
    for kind in ("validating", "mutating"):
        found = kube_api.request("GET", f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations")[1]
        assert found["items"] == []
    assert "labels" not in create(kube_api, "plain")[1]["metadata"]


def test_conversion(webhook_server, kube_api):
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    import yaml

    definition = yaml.safe_load(CRD)
    for version in definition["spec"]["versions"]:
        version["schema"] = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    assert kube_api.request("POST", definitions, definition)[0] == 201
    kube_api.wait_for("customresourcedefinitions/things.example.com", condition="Established")

    def convert(thing, wanted):
        old, new = ("size", "width") if wanted.endswith("/v2") else ("width", "size")
        thing[new] = thing.pop(old)
        return thing

    webhook = webhook_server.conversion("things.example.com", convert)
    things = "/apis/example.com/{}/namespaces/default/things"
    body = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "mine"}, "size": 7}
    assert kube_api.request("POST", things.format("v1"), body)[0] == 201
    assert kube_api.request("GET", f"{things.format('v2')}/mine")[1]["width"] == 7
    assert webhook.requests
    webhook.remove()
    assert "width" not in kube_api.request("GET", f"{things.format('v2')}/mine")[1]
    spec = kube_api.request("GET", f"{definitions}/things.example.com")[1]["spec"]
    assert spec["conversion"] == {"strategy": "None"}


def test_refused(webhook_server):
    with pytest.raises(WebhookSetupError, match="422.*invalid operation|422.*Unsupported value"):
        webhook_server.validating("configmaps", lambda request: None, operations=["READ"])


@pytest.mark.xfail(raises=KeyError, strict=True)
def test_handler_error(kube_api):
    from kubetwist.testing.webhookservice import WebhookService

    with WebhookService(kube_api.connection) as service:
        service.validating("configmaps", lambda request: request["nothing"], namespace="default")
        code, status = create(kube_api, "mine")
        assert code == 500 and "failed calling webhook" in status["message"]
"""


@pytest.mark.parametrize("mode", ["thread", "child", "process"])
def test_kopf(tmp_path: Path, mode: str) -> None:
    """Operators from files, modules and registries run with a server in each place."""
    pytest.importorskip("kopf")
    pytest.importorskip("kubernetes")
    for name, content in (("test_mine.py", KOPF), ("copies.py", OPERATOR), ("handlers.py", HANDLERS)):
        (tmp_path / name).write_text(content)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nkubetwist_server = {mode}\n")
    assert "9 passed" in run_pytest(tmp_path)


@pytest.mark.parametrize("mode", ["thread", "child", "process"])
def test_webhooks(tmp_path: Path, mode: str) -> None:
    """Functions are webhooks of a server in each place."""
    (tmp_path / "test_mine.py").write_text(WEBHOOKS)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nkubetwist_server = {mode}\n")
    assert "5 passed, 1 xfailed" in run_pytest(tmp_path)


def test_webhooks_beside_pytest_twisted(tmp_path: Path) -> None:
    """The fixture needs no reactor, so that it works where pytest-twisted runs the reactor."""
    pytest.importorskip("pytest_twisted")
    (tmp_path / "test_mine.py").write_text(WEBHOOKS)
    assert "5 passed, 1 xfailed" in run_pytest(tmp_path, pytest_twisted=True)


@pytest.mark.parametrize("name", sorted(name for name in FILES if name.startswith("test_")))
def test_page(tmp_path: Path, name: str) -> None:
    """The tests of the page pass, with the files of the page beside them."""
    for library in set(re.findall(r"^(?:import|from) (kopf|kubernetes)\b", "".join(FILES.values()), re.MULTILINE)):
        pytest.importorskip(library)
    for file, content in FILES.items():
        if file == name or not file.startswith("test_"):
            (tmp_path / file).write_text(content)
    assert "passed" in run_pytest(tmp_path)


def test_page_is_complete() -> None:
    """The page has an example of each fixture, and each block of it has a name."""
    assert {"test_greeter.py", "test_webhooks.py"} <= set(FILES)
    assert len(re.findall(r"```(?:python|yaml)\n", PAGE)) == len(FILES)
