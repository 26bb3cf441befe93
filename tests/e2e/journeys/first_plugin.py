"""Write an admission plugin from the template, install it, run its tests, and see what it does to requests."""

from __future__ import annotations

import time

from .steps import TIMEOUT, Server, Steps, run_alone

PODS = "/api/v1/namespaces/default/pods"


def pod(name: str, labels: dict[str, str]) -> dict[str, object]:
    """Return a pod."""
    container = {"name": "main", "image": "nginx"}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [container]}}


def wait_for_account(server: Server) -> None:
    """Wait until pods can be created: a controller makes their service account."""
    deadline = time.monotonic() + TIMEOUT
    while server.request("GET", "/api/v1/namespaces/default/serviceaccounts/default")[0] != 200:
        assert time.monotonic() < deadline, "no default service account"
        time.sleep(0.02)


def walk(steps: Steps) -> None:
    """Start a server with the plugin."""
    with steps.step("plugin: twist kubeapi-plugin"):
        steps.run(steps.python.with_name("twist"), "kubeapi-plugin", "team-labels")
    with steps.step("plugin: pip install"):
        steps.pip("install", "--quiet", "hypothesis", "./team-labels")
    with steps.step("plugin: its tests"):
        steps.run(steps.python, "-m", "twisted.trial", "team_labels")
    with steps.step("plugin: server, admitted and denied request"), steps.server() as server:
        wait_for_account(server)
        created = server.create(PODS, pod("admitted", {}))
        assert created["metadata"]["labels"] == {"example.com/team": "default"}, created
        status, answer = server.request("POST", PODS, pod("denied", {"example.com/team": ""}))
        assert status == 403 and "the label example.com/team is missing" in answer["message"], answer
    steps.pip("uninstall", "--quiet", "--yes", "team-labels")


def main() -> None:
    """Run the journey in a new environment."""
    run_alone(walk)


if __name__ == "__main__":
    main()
