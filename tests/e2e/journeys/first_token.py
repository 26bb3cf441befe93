"""Make a service account that may read pods, and its token: with kubectl if there is one, else by a TokenRequest."""

from __future__ import annotations

from .steps import Server, Steps, kubectl, run_alone

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


def walk(steps: Steps) -> None:
    """Start a server, and authenticate a client by a new token."""
    with steps.server() as server, steps.step("token: account, role, token, first request"):
        token = by_kubectl(steps, server, command) if (command := kubectl()) else by_requests(server)
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        status, answer = server.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review, token)
        assert status == 201, answer
        assert answer["status"]["userInfo"]["username"] == "system:serviceaccount:default:me", answer
        status, answer = server.request("GET", "/api/v1/namespaces/default/pods", token=token)
        assert status == 200, answer
        status, answer = server.request("GET", "/api/v1/namespaces/default/secrets", token=token)
        assert status == 403, answer


def by_kubectl(steps: Steps, server: Server, command: str) -> str:
    """Return a token that kubectl creates."""
    start = (command, f"--kubeconfig={server.kubeconfig}", "--namespace=default", "create")
    steps.run(*start, "serviceaccount", "me")
    steps.run(*start, "role", "reader", "--verb=get,list", "--resource=pods")
    steps.run(*start, "rolebinding", "me", "--role=reader", "--serviceaccount=default:me")
    return steps.run(*start, "token", "me").strip()


def by_requests(server: Server) -> str:
    """Return a token that requests create."""
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    group = "rbac.authorization.k8s.io"
    server.create(ACCOUNTS, {"metadata": {"name": "me"}})
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
    server.create(f"{rbac}/roles", {"metadata": {"name": "reader"}, "rules": [rule]})
    binding = {
        "metadata": {"name": "me"},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "me", "namespace": "default"}],
    }
    server.create(f"{rbac}/rolebindings", binding)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token: str = server.create(f"{ACCOUNTS}/me/token", request)["status"]["token"]
    return token


def main() -> None:
    """Run the journey in a new environment."""
    run_alone(walk)


if __name__ == "__main__":
    main()
