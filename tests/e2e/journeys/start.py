"""Start a server, and send the first request: over HTTPS, and with kubectl if there is one."""

from __future__ import annotations

from .steps import Steps, kubectl, run_alone


def walk(steps: Steps) -> None:
    """Start the server twice: the second start finds the keys and objects of the first one."""
    for name in ("start: first twist kubeapi", "start: second twist kubeapi"):
        with steps.step(name), steps.server() as server:
            status, namespaces = server.request("GET", "/api/v1/namespaces")
            assert status == 200, namespaces
            assert "default" in [item["metadata"]["name"] for item in namespaces["items"]]
            command = kubectl()
            if command:
                names = steps.run(command, f"--kubeconfig={server.kubeconfig}", "get", "namespaces", "--output=name")
                assert "namespace/default" in names.split(), names


def main() -> None:
    """Run the journey in a new environment."""
    run_alone(walk)


if __name__ == "__main__":
    main()
