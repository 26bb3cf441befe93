"""Tests for the verbs of kubectl that read."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest

from .conftest import Kubectl
from .manifests import CONFIG_MAP, DEPLOYMENT, POD

pytestmark = pytest.mark.kubectl


def columns(text: str) -> list[list[str]]:
    """Return the cells of a printed table, which are separated by two or more spaces."""
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]


def test_get_table(kubectl: Kubectl) -> None:
    """get prints the columns of the kind."""
    kubectl("create", "-f", "-", stdin=CONFIG_MAP)
    head, row = columns(kubectl("get", "configmaps"))
    assert head == ["NAME", "DATA", "AGE"]
    assert row[:2] == ["settings", "2"]


def test_get_wide(kubectl: Kubectl) -> None:
    """get -o wide adds the columns with a lower priority."""
    kubectl("create", "-f", "-", stdin=DEPLOYMENT)
    head, row = columns(kubectl("get", "deployments", "-o", "wide"))
    assert head == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS", "IMAGES", "SELECTOR"]
    assert row[:4] == ["web", "0/2", "0", "0"]
    assert row[5:] == ["nginx", "nginx:1.27", "app=web"]


def test_get_yaml(kubectl: Kubectl) -> None:
    """get -o yaml prints the object with the fields that the server set."""
    kubectl("create", "-f", "-", stdin=CONFIG_MAP)
    shown = kubectl.object("configmap", "settings")
    assert shown["data"] == {"colour": "green", "size": "small"}
    assert {"uid", "resourceVersion", "creationTimestamp"} <= shown["metadata"].keys()
    assert (shown["apiVersion"], shown["kind"]) == ("v1", "ConfigMap")


def test_get_jsonpath(kubectl: Kubectl) -> None:
    """get -o jsonpath selects from one object and from a list."""
    kubectl("create", "-f", "-", stdin=DEPLOYMENT)
    image = "{.spec.template.spec.containers[0].image}"
    assert kubectl("get", "deployment", "web", "-o", f"jsonpath={image}") == "nginx:1.27"
    assert kubectl("get", "deployments", "-o", "jsonpath={.items[*].metadata.name}") == "web"


def test_get_field_selector(kubectl: Kubectl) -> None:
    """get --field-selector is answered by the server."""
    for name in ("a", "b"):
        kubectl("create", "configmap", name)
    assert kubectl("get", "configmaps", "--field-selector", "metadata.name!=a", "-o", "name") == "configmap/b\n"
    wrong = kubectl.run("get", "configmaps", "--field-selector", "data.x=y")
    assert wrong.returncode == 1
    assert '"data.x" is not a known field selector' in wrong.stderr


def test_get_in_chunks(kubectl: Kubectl) -> None:
    """get --chunk-size follows continue tokens to the end."""
    for number in range(7):
        kubectl("create", "configmap", f"cm-{number}")
    assert len(kubectl("get", "configmaps", "--chunk-size=3", "-o", "name").split()) == 7


def test_get_watch(kubectl: Kubectl) -> None:
    """get -w prints the existing objects, then each change."""
    kubectl("create", "-f", "-", stdin=CONFIG_MAP)
    watch = kubectl.start("get", "configmaps", "-w", "--output-watch-events", "-o", "json")
    try:
        assert watch.stdout is not None
        decoder, text = json.JSONDecoder(), ""

        def event() -> tuple[str, dict[str, object]]:
            nonlocal text
            while True:
                try:
                    document, end = decoder.raw_decode(text.lstrip())
                except ValueError:
                    line = watch.stdout.readline()  # type: ignore[union-attr]
                    assert line, "the watch ended"
                    text += line
                else:
                    text = text.lstrip()[end:]
                    return document["type"], document["object"]["metadata"]

        assert (event()[0]) == "ADDED"
        kubectl("label", "configmap", "settings", "seen=yes")
        kind, metadata = event()
        assert (kind, metadata["labels"]) == ("MODIFIED", {"seen": "yes"})
        kubectl("delete", "configmap", "settings")
        assert event()[0] == "DELETED"
    finally:
        watch.kill()
        watch.communicate()


def test_describe(kubectl: Kubectl) -> None:
    """describe prints an object and related objects."""
    kubectl("create", "-f", "-", stdin=DEPLOYMENT)
    shown = kubectl("describe", "deployment", "web")
    assert re.search(r"^Name:\s+web$", shown, re.M)
    assert re.search(r"^Replicas:\s+2 desired", shown, re.M)
    assert re.search(r"^Events:\s+<none>$", shown, re.M)
    kubectl("create", "-f", "-", stdin=POD)
    assert re.search(r"^Name:\s+worker$", kubectl("describe", "pods"), re.M)


def test_explain(kubectl: Kubectl) -> None:
    """explain reads OpenAPI v3: the kind, its fields, their documentation."""
    shown = kubectl("explain", "deployment.spec.replicas")
    assert re.search(r"^FIELD: replicas <integer>$", shown, re.M)
    assert "Number of desired pods" in shown
    recursive = kubectl("explain", "pods", "--recursive")
    assert re.search(r"^\s+terminationGracePeriodSeconds\t<integer>$", recursive, re.M)


def test_api_resources(kubectl: Kubectl) -> None:
    """api-resources lists names, short names, versions, scopes and kinds of the served resources."""
    rows = [line.split() for line in kubectl("api-resources", "--no-headers").splitlines()]
    assert ["deployments", "deploy", "apps/v1", "true", "Deployment"] in rows
    assert ["namespaces", "ns", "v1", "false", "Namespace"] in rows
    wide = kubectl("api-resources", "--api-group=apps", "-o", "wide", "--no-headers")
    deployments = next(line for line in wide.splitlines() if line.startswith("deployments"))
    assert "create,delete,deletecollection,get,list,patch,update,watch" in deployments
    assert deployments.endswith("all")


def test_api_versions(kubectl: Kubectl) -> None:
    """api-versions lists every group and version that is served."""
    versions = kubectl("api-versions").split()
    assert {"v1", "apps/v1", "autoscaling/v1", "autoscaling/v2", "batch/v1", "events.k8s.io/v1"} <= set(versions)
    assert {"apiextensions.k8s.io/v1", "apiregistration.k8s.io/v1"} <= set(versions)


def test_version(kubectl: Kubectl) -> None:
    """version prints the emulated release."""
    shown = json.loads(kubectl("version", "-o", "json"))
    assert shown["serverVersion"]["gitVersion"].startswith("v1.36.")


def test_short_names(kubectl: Kubectl) -> None:
    """get finds resources by short name, by singular and by category."""
    kubectl("create", "-f", "-", stdin=DEPLOYMENT)
    assert kubectl("get", "deploy", "-o", "name") == "deployment.apps/web\n"
    assert "deployment.apps/web\n" in kubectl("get", "all", "-o", "name")


def test_wait(kubectl: Kubectl) -> None:
    """wait returns when a condition is met, a field has a value, or an object is deleted."""
    kubectl("create", "-f", "-", stdin=DEPLOYMENT)
    waiting = kubectl.start("wait", "deployment/web", "--for=condition=Available", "--timeout=30s")
    try:
        condition = {"type": "Available", "status": "True", "reason": "Tested", "message": "by hand"}
        patch = json.dumps({"status": {"conditions": [condition]}})
        kubectl("patch", "deployment", "web", "--subresource=status", "--type=merge", "-p", patch)
        assert waiting.communicate(timeout=30)[0] == "deployment.apps/web condition met\n"
    finally:
        waiting.kill()
    kubectl("wait", "deployment/web", "--for=jsonpath={.spec.replicas}=2", "--timeout=10s")
    kubectl("delete", "deployment", "web", "--wait=false")
    kubectl("wait", "deployment/web", "--for=delete", "--timeout=10s")


def test_wait_times_out(kubectl: Kubectl) -> None:
    """wait fails after its timeout."""
    kubectl("create", "-f", "-", stdin=DEPLOYMENT)
    late = kubectl.run("wait", "deployment/web", "--for=condition=Available", "--timeout=1s")
    assert late.returncode == 1
    assert "timed out waiting for the condition" in late.stderr


def test_diff(kubectl: Kubectl) -> None:
    """diff --server-side=false prints the changes that apply would make, and changes nothing."""
    if not shutil.which("diff"):
        pytest.skip("diff is not on PATH")
    kubectl("apply", "-f", "-", stdin=CONFIG_MAP)
    assert kubectl("diff", "--server-side=false", "-f", "-", stdin=CONFIG_MAP) == ""
    changed = kubectl.run("diff", "--server-side=false", "-f", "-", stdin=CONFIG_MAP.replace("green", "red"))
    assert changed.returncode == 1, changed.stderr
    assert "-  colour: green\n+  colour: red\n" in changed.stdout
    assert kubectl.object("configmap", "settings")["data"]["colour"] == "green"


def test_config(kubectl: Kubectl) -> None:
    """The generated kubeconfig has a current context, a cluster and a user with credentials."""
    assert kubectl("config", "current-context").strip()
    view = json.loads(kubectl("config", "view", "--minify", "-o", "json"))
    assert view["clusters"][0]["cluster"]["server"].startswith("https://127.0.0.1:")
    assert "insecure-skip-tls-verify" not in view["clusters"][0]["cluster"]


def test_get_raw(kubectl: Kubectl) -> None:
    """get --raw requests non-resource paths."""
    assert kubectl("get", "--raw", "/readyz") == "ok"
    assert "[+]ping ok" in kubectl("get", "--raw", "/readyz?verbose")


def test_admin(kubectl: Kubectl) -> None:
    """The certificate in the kubeconfig authenticates an administrator."""
    kubectl("get", "secrets", "--all-namespaces")


def test_completion(kubectl: Kubectl) -> None:
    """Shell completion offers existing names."""
    kubectl("create", "-f", "-", stdin=CONFIG_MAP)
    offered = subprocess.run(
        [kubectl.command[0], "__complete", *kubectl.command[1:], "get", "configmaps", "se"],
        capture_output=True,
        text=True,
        env=kubectl.environment,
    )
    assert "settings" in offered.stdout.split(), offered
