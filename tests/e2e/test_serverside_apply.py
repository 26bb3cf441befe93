"""Tests for field ownership with kubectl and the Python client."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import config
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import ConflictError

from kubetwist.testing import SubprocessServer

from .conftest import Kubectl
from .manifests import CONFIG_MAP, DEPLOYMENT

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
RED = CONFIG_MAP.replace("green", "red")
SMALLER = CONFIG_MAP.replace("  size: small\n", "")


def owners(obj: Any) -> dict[tuple[str, str, str], Any]:
    """Return the field sets of an object by manager, operation and subresource."""
    return {
        (entry["manager"], entry["operation"], entry.get("subresource", "")): entry["fieldsV1"]
        for entry in obj["metadata"]["managedFields"]
    }


def shown(kubectl: Kubectl, *arguments: str) -> Any:
    """Return an object with its managed fields."""
    return kubectl.object(*arguments, "--show-managed-fields")


@pytest.mark.kubectl
def test_apply(kubectl: Kubectl) -> None:
    """
    apply --server-side creates, leaves equal objects unchanged, and removes fields that the manifest no longer has.
    """
    applied = "configmap/settings serverside-applied\n"
    assert kubectl("apply", "--server-side", "-f", "-", stdin=CONFIG_MAP) == applied
    before = shown(kubectl, "configmap", "settings")
    assert kubectl("apply", "--server-side", "-f", "-", stdin=CONFIG_MAP) == applied
    assert shown(kubectl, "configmap", "settings") == before
    assert kubectl("apply", "--server-side", "-f", "-", stdin=SMALLER) == applied
    after = shown(kubectl, "configmap", "settings")
    assert after["data"] == {"colour": "green"}
    assert owners(after) == {("kubectl", "Apply", ""): {"f:data": {"f:colour": {}}}}
    assert LAST_APPLIED not in after["metadata"].get("annotations", {})


@pytest.mark.kubectl
def test_conflict(kubectl: Kubectl) -> None:
    """A conflict names the other manager, and --force-conflicts takes over the field."""
    kubectl("apply", "--server-side", "-f", "-", stdin=CONFIG_MAP)
    other = ("apply", "--server-side", "--field-manager=other", "-f", "-")
    refused = kubectl.run(*other, stdin=RED)
    assert refused.returncode == 1
    assert 'Apply failed with 1 conflict: conflict with "kubectl": .data.colour' in refused.stderr
    assert kubectl.object("configmap", "settings")["data"]["colour"] == "green"
    kubectl(*other, "--force-conflicts", stdin=RED)
    taken = shown(kubectl, "configmap", "settings")
    assert taken["data"] == {"colour": "red", "size": "small"}
    assert owners(taken) == {
        ("kubectl", "Apply", ""): {"f:data": {"f:size": {}}},
        ("other", "Apply", ""): {"f:data": {"f:colour": {}, "f:size": {}}},
    }
    back = kubectl.run("apply", "--server-side", "-f", "-", stdin=CONFIG_MAP)
    assert 'conflict with "other": .data.colour' in back.stderr


@pytest.mark.kubectl
def test_shared(kubectl: Kubectl) -> None:
    """A field that two managers apply with the same value stays until both have dropped it."""
    for manager in ("one", "two"):
        kubectl("apply", "--server-side", f"--field-manager={manager}", "-f", "-", stdin=CONFIG_MAP)
    kubectl("apply", "--server-side", "--field-manager=one", "-f", "-", stdin=SMALLER)
    assert kubectl.object("configmap", "settings")["data"] == {"colour": "green", "size": "small"}
    kubectl("apply", "--server-side", "--field-manager=two", "-f", "-", stdin=SMALLER)
    assert kubectl.object("configmap", "settings")["data"] == {"colour": "green"}


@pytest.mark.kubectl
def test_dry_run(kubectl: Kubectl) -> None:
    """apply --server-side --dry-run=server returns the result, stores nothing, and reports conflicts."""
    dry = ("apply", "--server-side", "--dry-run=server", "-f", "-")
    assert kubectl(*dry, stdin=CONFIG_MAP) == "configmap/settings serverside-applied (server dry run)\n"
    assert kubectl("get", "configmap", "settings", "--ignore-not-found") == ""
    kubectl("apply", "--server-side", "-f", "-", stdin=CONFIG_MAP)
    before = shown(kubectl, "configmap", "settings")
    assert json.loads(kubectl(*dry, "-o", "json", stdin=RED))["data"]["colour"] == "red"
    refused = kubectl.run(*dry, "--field-manager=other", stdin=RED)
    assert "Apply failed with 1 conflict" in refused.stderr
    assert shown(kubectl, "configmap", "settings") == before


@pytest.mark.kubectl
def test_diff(kubectl: Kubectl) -> None:
    """
    diff --server-side exits with 0 if apply would change nothing; otherwise it prints the changes and exits with 1.
    """
    if not shutil.which("diff"):
        pytest.skip("diff is not on PATH")
    diff = ("diff", "--server-side", "-f", "-")
    for manifest, old, new in ((CONFIG_MAP, "green", "red"), (DEPLOYMENT, "nginx:1.27", "nginx:1.28")):
        fresh = kubectl.run(*diff, stdin=manifest)
        assert (fresh.returncode, fresh.stderr) == (1, "")
        kubectl("apply", "--server-side", "-f", "-", stdin=manifest)
        same = kubectl.run(*diff, stdin=manifest)
        assert (same.returncode, same.stdout, same.stderr) == (0, "", "")
        changed = kubectl.run(*diff, stdin=manifest.replace(old, new))
        assert (changed.returncode, changed.stderr) == (1, "")
        lines = [line for line in changed.stdout.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
        assert [line.strip("+- ").split(": ")[-1] for line in lines if "generation" not in line] == [old, new]
    assert kubectl.object("configmap", "settings")["data"]["colour"] == "green"


@pytest.mark.kubectl
def test_migration(kubectl: Kubectl) -> None:
    """The ownership of client-side apply is migrated to server-side apply, which can then remove fields."""
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    before = shown(kubectl, "deployment", "web")
    assert [manager for manager, *_ in owners(before)] == ["kubectl-client-side-apply"]
    assert owners(before)["kubectl-client-side-apply", "Update", ""]["f:metadata"]["f:annotations"] == {
        ".": {},
        f"f:{LAST_APPLIED}": {},
    }
    changed = DEPLOYMENT.replace("nginx:1.27", "nginx:1.28").replace("  labels: {app: web}\nspec", "spec")
    kubectl("apply", "--server-side", "-f", "-", stdin=changed)
    after = shown(kubectl, "deployment", "web")
    assert "labels" not in after["metadata"]
    assert after["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:1.28"
    # kubectl owns the annotation under a separate manager, so that a manifest without it does not remove it.
    sets = owners(after)
    assert sets.keys() == {("kubectl", "Apply", ""), ("kubectl-last-applied", "Apply", "")}
    assert "f:metadata" in sets["kubectl-last-applied", "Apply", ""]
    assert sets["kubectl", "Apply", ""]["f:spec"].keys() == {"f:replicas", "f:selector", "f:template"}
    kept = json.loads(after["metadata"]["annotations"][LAST_APPLIED])
    assert kept["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:1.28"


@pytest.mark.kubectl
def test_migration_back(kubectl: Kubectl) -> None:
    """Client-side apply continues from the annotation that server-side apply keeps up to date."""
    kubectl("apply", "-f", "-", stdin=CONFIG_MAP)
    grown = RED + "  shape: round\n"
    kubectl("apply", "--server-side", "-f", "-", stdin=grown)
    assert kubectl("apply", "-f", "-", stdin=RED) == "configmap/settings configured\n"
    assert kubectl.object("configmap", "settings")["data"] == {"colour": "red", "size": "small"}


@pytest.mark.kubectl
def test_show_managed_fields(kubectl: Kubectl) -> None:
    """get hides managed fields by default; an entry has manager, operation, version, time and fields."""
    kubectl("create", "-f", "-", stdin=CONFIG_MAP)
    kubectl("label", "configmap", "settings", "tier=front")
    assert "managedFields" not in kubectl.object("configmap", "settings")["metadata"]
    obj = shown(kubectl, "configmap", "settings")
    assert owners(obj) == {
        ("kubectl-create", "Update", ""): {"f:data": {".": {}, "f:colour": {}, "f:size": {}}},
        ("kubectl-label", "Update", ""): {"f:metadata": {"f:labels": {".": {}, "f:tier": {}}}},
    }
    for entry in obj["metadata"]["managedFields"]:
        assert (entry["apiVersion"], entry["fieldsType"]) == ("v1", "FieldsV1")
        assert entry["time"] >= obj["metadata"]["creationTimestamp"]


@pytest.mark.kubectl
def test_scale(kubectl: Kubectl) -> None:
    """scale owns replicas under its subresource: applying another number conflicts, applying none keeps it."""
    kubectl("apply", "--server-side", "-f", "-", stdin=DEPLOYMENT)
    kubectl("scale", "deployment", "web", "--replicas=5")
    scaled = owners(shown(kubectl, "deployment", "web"))
    assert scaled["kubectl", "Update", "scale"] == {"f:spec": {"f:replicas": {}}}
    assert "f:replicas" not in scaled["kubectl", "Apply", ""]["f:spec"]
    refused = kubectl.run("apply", "--server-side", "-f", "-", stdin=DEPLOYMENT)
    assert refused.returncode == 1
    assert 'conflict with "kubectl" with subresource "scale" using apps/v1: .spec.replicas' in refused.stderr
    kubectl("apply", "--server-side", "-f", "-", stdin=DEPLOYMENT.replace("  replicas: 2\n", ""))
    assert kubectl.object("deployment", "web")["spec"]["replicas"] == 5
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=DEPLOYMENT)
    taken = shown(kubectl, "deployment", "web")
    assert taken["spec"]["replicas"] == 2
    assert [operation for _, operation, _ in owners(taken)] == ["Apply"]


@pytest.fixture
def dynamic(server: SubprocessServer) -> Iterator[DynamicClient]:
    """The dynamic client of the C{kubernetes} package."""
    with config.new_client_from_config(str(server.kubeconfig)) as api:
        yield DynamicClient(api)


def test_dynamic_client(dynamic: DynamicClient, namespace: str) -> None:
    """server_side_apply creates, conflicts with 409 and causes, forces, and removes dropped fields."""
    maps = dynamic.resources.get(api_version="v1", kind="ConfigMap")

    def apply(manager: str, data: dict[str, str], force: bool | None = None) -> Any:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": data}
        return maps.server_side_apply(
            body=body, namespace=namespace, field_manager=manager, force_conflicts=force
        ).to_dict()

    created = apply("one", {"colour": "green", "size": "small"})
    assert owners(created) == {("one", "Apply", ""): {"f:data": {"f:colour": {}, "f:size": {}}}}
    with pytest.raises(ConflictError) as refused:
        apply("two", {"colour": "red", "size": "big", "shape": "round"})
    assert refused.value.status == 409
    status = json.loads(refused.value.body)
    assert status["reason"] == "Conflict"
    assert status["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": f".data.{key}"}
        for key in ("colour", "size")
    ]
    assert apply("two", {"colour": "red"}, force=True)["data"] == {"colour": "red", "size": "small"}
    assert apply("one", {})["data"] == {"colour": "red"}
    assert "data" not in apply("two", {})
