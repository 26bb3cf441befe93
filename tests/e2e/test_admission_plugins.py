"""Tests for quotas under many concurrent clients, and for the Pod Security Standards with kubectl."""

from __future__ import annotations

import pytest

from kubetwist.testing import SubprocessServer

from .conftest import Kubectl
from .test_allocators import together
from .test_deletion import until

CLIENTS, ROOM = 100, 37


def test_no_overshoot(server: SubprocessServer, namespace: str) -> None:
    """
    Of a hundred concurrent creations, exactly the number that the quota allows succeeds, and the quota's status is
    correct.
    """
    path = f"/api/v1/namespaces/{namespace}"
    hard = {"count/secrets": str(ROOM)}
    code, answer = server.request("POST", f"{path}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}})
    assert code == 201, answer
    counted = {"hard": hard, "used": {"count/secrets": "0"}}
    until(lambda: server.request("GET", f"{path}/resourcequotas/q")[1]["status"] == counted, "the quota is counted")
    answers = together(
        CLIENTS, lambda number: server.request("POST", f"{path}/secrets", {"metadata": {"name": f"c{number}"}})
    )
    codes = [code for code, _ in answers]
    assert (codes.count(201), codes.count(403)) == (ROOM, CLIENTS - ROOM)
    assert all("exceeded quota: q" in answer["message"] for code, answer in answers if code == 403)
    _, listed = server.request("GET", f"{path}/secrets")
    _, quota = server.request("GET", f"{path}/resourcequotas/q")
    assert len(listed["items"]) == ROOM
    assert quota["status"]["used"] == {"count/secrets": str(ROOM)}


@pytest.mark.kubectl
def test_pod_security(kubectl: Kubectl) -> None:
    """Tightening a namespace warns about its existing pods; new pods are rejected, and workloads get warnings."""
    kubectl("run", "old", "--image=nginx")
    label = "pod-security.kubernetes.io/enforce=restricted"
    labelled = kubectl.run("label", "namespace", kubectl.namespace, label)
    assert labelled.returncode == 0
    assert 'violate the new PodSecurity enforce level "restricted:latest"' in labelled.stderr
    assert "Warning: old: allowPrivilegeEscalation != false, unrestricted capabilities" in labelled.stderr
    refused = kubectl.run("run", "new", "--image=nginx")
    assert refused.returncode == 1
    assert 'pods "new" is forbidden: violates PodSecurity "restricted:latest"' in refused.stderr
    warned = kubectl.run("create", "deployment", "web", "--image=nginx")
    assert warned.returncode == 0
    assert 'Warning: would violate PodSecurity "restricted:latest"' in warned.stderr
