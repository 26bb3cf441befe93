"""Tests for the verbs of kubectl that write."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kubetwist.testing import SubprocessServer

from .conftest import Kubectl
from .manifests import CONFIG_MAP, DEPLOYMENT, POD

pytestmark = pytest.mark.kubectl


def test_create_from_file(kubectl: Kubectl) -> None:
    """create -f creates an object, and fails with AlreadyExists the second time."""
    assert kubectl("create", "-f", "-", stdin=CONFIG_MAP) == "configmap/settings created\n"
    again = kubectl.run("create", "-f", "-", stdin=CONFIG_MAP)
    assert again.returncode == 1
    assert 'configmaps "settings" already exists' in again.stderr


@pytest.mark.parametrize(
    ("arguments", "created"),
    [
        (("configmap", "a", "--from-literal=k=v"), "configmap/a"),
        (("secret", "generic", "b", "--from-literal=k=v"), "secret/b"),
        (("serviceaccount", "c"), "serviceaccount/c"),
        (("deployment", "d", "--image=nginx", "--replicas=3"), "deployment.apps/d"),
        (("service", "clusterip", "e", "--tcp=80:8080"), "service/e"),
        (("job", "f", "--image=busybox"), "job.batch/f"),
        (("cronjob", "g", "--image=busybox", "--schedule=*/5 * * * *"), "cronjob.batch/g"),
        (("role", "h", "--verb=get", "--resource=pods"), "role.rbac.authorization.k8s.io/h"),
        (("rolebinding", "i", "--role=h", "--user=alice"), "rolebinding.rbac.authorization.k8s.io/i"),
        (("ingress", "j", "--rule=example.org/*=e:80"), "ingress.networking.k8s.io/j"),
        (("quota", "k", "--hard=pods=5"), "resourcequota/k"),
        (("poddisruptionbudget", "l", "--selector=app=d", "--min-available=1"), "poddisruptionbudget.policy/l"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_create_generators(kubectl: Kubectl, arguments: tuple[str, ...], created: str) -> None:
    """create KIND creates objects that can be read immediately."""
    assert kubectl("create", *arguments) == f"{created} created\n"
    assert kubectl("get", created, "-o", "name") == f"{created}\n"


def test_create_dry_run(kubectl: Kubectl) -> None:
    """create --dry-run=server returns the result and stores nothing."""
    assert "created (server dry run)" in kubectl("create", "-f", "-", "--dry-run=server", stdin=CONFIG_MAP)
    assert kubectl("get", "configmap", "settings", "--ignore-not-found") == ""


def test_create_refuses_unknown_fields(kubectl: Kubectl) -> None:
    """A field that the kind lacks is rejected by name."""
    wrong = kubectl.run("create", "-f", "-", stdin=DEPLOYMENT.replace("replicas: 2", "replicaz: 2"))
    assert wrong.returncode == 1
    assert 'unknown field "spec.replicaz"' in wrong.stderr


def test_apply(kubectl: Kubectl) -> None:
    """Client-side apply creates, leaves equal objects unchanged, and removes fields that the manifest no longer has."""
    assert kubectl("apply", "-f", "-", stdin=CONFIG_MAP) == "configmap/settings created\n"
    assert kubectl("apply", "-f", "-", stdin=CONFIG_MAP) == "configmap/settings unchanged\n"
    changed = CONFIG_MAP.replace("green", "red").replace("  size: small\n", "")
    assert kubectl("apply", "-f", "-", stdin=changed) == "configmap/settings configured\n"
    assert kubectl.object("configmap", "settings")["data"] == {"colour": "red"}


def test_apply_merges_lists_by_key(kubectl: Kubectl) -> None:
    """Client-side apply merges containers by name, and keeps those that other clients added."""
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    sidecar = {"spec": {"template": {"spec": {"containers": [{"name": "sidecar", "image": "envoy:1"}]}}}}
    kubectl("patch", "deployment", "web", "-p", json.dumps(sidecar))
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT.replace("nginx:1.27", "nginx:1.28"))
    containers = kubectl.object("deployment", "web")["spec"]["template"]["spec"]["containers"]
    assert {container["name"]: container["image"] for container in containers} == {
        "nginx": "nginx:1.28",
        "sidecar": "envoy:1",
    }


def test_edit(kubectl: Kubectl, tmp_path: Path) -> None:
    """edit stores the edited manifest."""
    kubectl("create", "-f", "-", stdin=CONFIG_MAP)
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/colour: green/colour: blue/" "$1"\n')
    editor.chmod(0o755)
    assert kubectl("edit", "configmap", "settings", EDITOR=str(editor)) == "configmap/settings edited\n"
    assert kubectl.object("configmap", "settings")["data"] == {"colour": "blue", "size": "small"}


def test_label(kubectl: Kubectl) -> None:
    """label sets, does not overwrite without the flag, selects, and removes labels."""
    kubectl("create", "-f", "-", stdin=CONFIG_MAP)
    assert kubectl("label", "configmap", "settings", "tier=front") == "configmap/settings labeled\n"
    assert kubectl.run("label", "configmap", "settings", "tier=back").returncode == 1
    kubectl("label", "configmap", "settings", "tier=back", "--overwrite")
    assert kubectl("get", "configmaps", "-l", "tier in (back, side)", "-o", "name") == "configmap/settings\n"
    assert kubectl("label", "configmap", "settings", "tier-") == "configmap/settings unlabeled\n"
    assert "labels" not in kubectl.object("configmap", "settings")["metadata"]


def test_annotate(kubectl: Kubectl) -> None:
    """annotate sets and removes annotations."""
    kubectl("create", "-f", "-", stdin=CONFIG_MAP)
    assert kubectl("annotate", "configmap", "settings", "note=hello there") == "configmap/settings annotated\n"
    assert kubectl.object("configmap", "settings")["metadata"]["annotations"] == {"note": "hello there"}
    kubectl("annotate", "configmap", "settings", "note-")
    assert "annotations" not in kubectl.object("configmap", "settings")["metadata"]


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        ("strategic", '{"spec": {"template": {"spec": {"containers": [{"name": "nginx", "image": "nginx:9"}]}}}}'),
        ("merge", '{"spec": {"template": {"spec": {"containers": [{"name": "nginx", "image": "nginx:9"}]}}}}'),
        ("json", '[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:9"}]'),
    ],
)
def test_patch(kubectl: Kubectl, kind: str, patch: str) -> None:
    """Each type of patch changes the image; only the merge patch, which replaces lists, removes the ports."""
    kubectl("create", "-f", "-", stdin=DEPLOYMENT)
    assert kubectl("patch", "deployment", "web", "--type", kind, "-p", patch) == "deployment.apps/web patched\n"
    (container,) = kubectl.object("deployment", "web")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "nginx:9"
    assert ("ports" in container) == (kind != "merge")


def test_patch_status(kubectl: Kubectl) -> None:
    """patch --subresource=status changes only the status."""
    kubectl("create", "-f", "-", stdin=DEPLOYMENT)
    patch = '{"spec": {"replicas": 9}, "status": {"replicas": 2, "readyReplicas": 1}}'
    kubectl("patch", "deployment", "web", "--subresource=status", "--type=merge", "-p", patch)
    deployment = kubectl.object("deployment", "web")
    assert deployment["status"]["readyReplicas"] == 1
    assert deployment["spec"]["replicas"] == 2


def test_replace(kubectl: Kubectl) -> None:
    """replace stores the complete manifest, and rejects an outdated version."""
    kubectl("create", "-f", "-", stdin=CONFIG_MAP)
    old = kubectl("get", "configmap", "settings", "-o", "yaml")
    smaller = CONFIG_MAP.replace("  size: small\n", "")
    assert kubectl("replace", "-f", "-", stdin=smaller) == "configmap/settings replaced\n"
    assert kubectl.object("configmap", "settings")["data"] == {"colour": "green"}
    stale = kubectl.run("replace", "-f", "-", stdin=old)
    assert stale.returncode == 1
    assert "the object has been modified" in stale.stderr


def test_replace_force(kubectl: Kubectl) -> None:
    """replace --force deletes and recreates the object with another uid."""
    kubectl("create", "-f", "-", stdin=CONFIG_MAP)
    before = kubectl.object("configmap", "settings")["metadata"]["uid"]
    kubectl("replace", "--force", "-f", "-", stdin=CONFIG_MAP)
    assert kubectl.object("configmap", "settings")["metadata"]["uid"] != before


def test_scale(kubectl: Kubectl) -> None:
    """scale sets replicas through the scale subresource, and checks --current-replicas."""
    kubectl("create", "-f", "-", stdin=DEPLOYMENT)
    assert kubectl("scale", "deployment", "web", "--replicas=5") == "deployment.apps/web scaled\n"
    assert kubectl.object("deployment", "web")["spec"]["replicas"] == 5
    assert kubectl.run("scale", "deployment", "web", "--current-replicas=2", "--replicas=1").returncode == 1


def test_delete_waits(kubectl: Kubectl) -> None:
    """delete --wait returns when the object is deleted, and prints it."""
    kubectl("create", "-f", "-", stdin=CONFIG_MAP)
    assert 'configmap "settings" deleted' in kubectl("delete", "configmap", "settings", "--wait")
    missing = kubectl.run("get", "configmap", "settings")
    assert missing.returncode == 1
    assert missing.stderr == 'Error from server (NotFound): configmaps "settings" not found\n'


def test_delete_waits_for_finalizers(kubectl: Kubectl) -> None:
    """delete --wait returns after the last finalizer is removed."""
    kubectl("create", "-f", "-", stdin=CONFIG_MAP)
    kubectl("patch", "configmap", "settings", "--type=merge", "-p", '{"metadata":{"finalizers":["example.org/hold"]}}')
    waiting = kubectl.start("delete", "configmap", "settings", "--wait", "--timeout=30s")
    try:
        kubectl("wait", "configmap/settings", "--for=jsonpath={.metadata.deletionTimestamp}", "--timeout=30s")
        assert waiting.poll() is None
        kubectl("patch", "configmap", "settings", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        assert waiting.wait(30) == 0
    finally:
        waiting.kill()
        waiting.communicate()


def test_delete_by_selector(kubectl: Kubectl) -> None:
    """delete -l deletes exactly the selected objects."""
    for name, tier in (("a", "x"), ("b", "x"), ("c", "y")):
        kubectl("create", "configmap", name)
        kubectl("label", "configmap", name, f"tier={tier}")
    kubectl("delete", "configmaps", "-l", "tier=x")
    assert kubectl("get", "configmaps", "-o", "name") == "configmap/c\n"
    kubectl("delete", "configmaps", "--all")
    assert kubectl("get", "configmaps", "-o", "name") == ""


def test_delete_cascade(start_server: Callable[..., SubprocessServer], home: Path) -> None:
    """delete --cascade sets the finalizer of its policy for the garbage collector; background needs none."""
    kubectl = Kubectl(start_server("--controllers=").kubeconfig, "default", home)
    for cascade, finalizers in (("orphan", ["orphan"]), ("foreground", ["foregroundDeletion"]), ("background", None)):
        kubectl("create", "-f", "-", stdin=DEPLOYMENT)
        kubectl("delete", "deployment", "web", f"--cascade={cascade}", "--wait=false")
        if finalizers is not None:
            metadata = kubectl.object("deployment", "web")["metadata"]
            assert metadata["finalizers"] == finalizers
            assert "deletionTimestamp" in metadata
            kubectl("patch", "deployment", "web", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        assert kubectl("get", "deployment", "web", "--ignore-not-found") == ""


def test_delete_pod_at_once(kubectl: Kubectl) -> None:
    """delete --force --grace-period=0 removes a pod without a kubelet."""
    kubectl("create", "-f", "-", stdin=POD)
    kubectl("delete", "pod", "worker", "--force", "--grace-period=0")
    assert kubectl("get", "pod", "worker", "--ignore-not-found") == ""


def test_set_image_and_rollout(kubectl: Kubectl) -> None:
    """set image and rollout pause change the deployment by strategic merge."""
    kubectl("create", "-f", "-", stdin=DEPLOYMENT)
    kubectl("set", "image", "deployment/web", "nginx=nginx:7")
    kubectl("rollout", "pause", "deployment/web")
    spec = kubectl.object("deployment", "web")["spec"]
    assert spec["paused"] is True
    assert spec["template"]["spec"]["containers"][0]["image"] == "nginx:7"
