"""Tests for L{kubetwist.testing._clusterdiscovery}; tests/e2e/test_clusterdiscovery.py uses the libraries."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.testing._clusterdiscovery import ACCOUNT_FOLDERS, found_by_kubeconfig, found_in_cluster

VARIABLES = ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KUBERNETES_SERVICE_PORT_HTTPS")


def module(**content: Any) -> ModuleType:
    """Return a module."""
    made = ModuleType("made")
    vars(made).update(content)
    return made


class ClusterDiscoveryTests(SynchronousTestCase):
    """L{found_by_kubeconfig} and L{found_in_cluster}."""

    def setUp(self) -> None:
        """Create a home, a kubeconfig and a service account; hide the variables and libraries of the test's process."""
        self.home = Path(self.mktemp()).absolute()
        (self.home / ".kube").mkdir(parents=True)
        (self.home / ".kube" / "config").write_text("a kubeconfig of the user")
        self.kubeconfig = self.home / "admin.kubeconfig"
        self.kubeconfig.write_text("the kubeconfig")
        self.account = self.home / "account"
        self.account.mkdir()
        (self.account / "token").write_text("secret")
        environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        self.patch(os, "environ", {**environment, "HOME": str(self.home), "KUBERNETES_SERVICE_HOST": "192.0.2.1"})
        names = ("kubernetes", "kubernetes_asyncio", "kr8s")
        modules = {name: one for name, one in sys.modules.items() if not name.startswith(names)}
        self.patch(sys, "modules", modules)

    def variables(self) -> dict[str, str]:
        """Return the variables that clients read."""
        return {name: os.environ[name] for name in VARIABLES if name in os.environ}

    def test_kubeconfig(self) -> None:
        """A kubeconfig is the default, and the account of a surrounding pod is hidden."""
        path = Path("~/.kube/config").expanduser()
        with found_by_kubeconfig(self.kubeconfig):
            self.assertEqual({"KUBECONFIG": str(self.kubeconfig)}, self.variables())
            self.assertEqual("the kubeconfig", path.read_text())
            self.assertFalse(any(os.path.exists(folder) for folder in ACCOUNT_FOLDERS))
        self.assertEqual({"KUBERNETES_SERVICE_HOST": "192.0.2.1"}, self.variables())
        self.assertEqual("a kubeconfig of the user", path.read_text())

    def test_in_cluster(self) -> None:
        """The variables and files are those in a pod, and there is no kubeconfig."""
        os.environ["KUBECONFIG"] = "other"
        with found_in_cluster("::1", 4711, self.account):
            self.assertEqual(
                {
                    "KUBERNETES_SERVICE_HOST": "::1",
                    "KUBERNETES_SERVICE_PORT": "4711",
                    "KUBERNETES_SERVICE_PORT_HTTPS": "4711",
                },
                self.variables(),
            )
            for folder in ACCOUNT_FOLDERS:
                self.assertEqual("secret", Path(folder, "token").read_text())
            self.assertFalse(os.path.exists(os.path.expanduser("~/.kube/config")))
        self.assertEqual({"KUBECONFIG": "other", "KUBERNETES_SERVICE_HOST": "192.0.2.1"}, self.variables())
        self.assertTrue(os.path.exists(os.path.expanduser("~/.kube/config")))

    def test_nested(self) -> None:
        """The innermost context decides."""
        with found_in_cluster("::1", 4711, self.account):
            with found_by_kubeconfig(self.kubeconfig):
                self.assertEqual({"KUBECONFIG": str(self.kubeconfig)}, self.variables())
                self.assertFalse(os.path.exists(ACCOUNT_FOLDERS[0]))
            self.assertEqual("::1", os.environ["KUBERNETES_SERVICE_HOST"])
            self.assertTrue(os.path.exists(ACCOUNT_FOLDERS[0]))

    def test_constants(self) -> None:
        """Constants of modules follow the context, also if the module was imported in it."""
        loaded = sys.modules["kubernetes.config.kube_config"] = module(KUBE_CONFIG_DEFAULT_LOCATION="before")
        package = sys.modules["kubernetes.config"] = module()
        with found_by_kubeconfig(self.kubeconfig):
            self.assertEqual(str(self.kubeconfig), loaded.KUBE_CONFIG_DEFAULT_LOCATION)
            location = os.environ["KUBECONFIG"]
            late = sys.modules["kubernetes_asyncio.config"] = module(KUBE_CONFIG_DEFAULT_LOCATION=location)
            with found_in_cluster("::1", 4711, self.account):
                self.assertEqual("~/.kube/config", late.KUBE_CONFIG_DEFAULT_LOCATION)
            self.assertEqual(location, late.KUBE_CONFIG_DEFAULT_LOCATION)
        self.assertEqual("before", loaded.KUBE_CONFIG_DEFAULT_LOCATION)
        self.assertEqual("~/.kube/config", late.KUBE_CONFIG_DEFAULT_LOCATION)
        self.assertFalse(hasattr(package, "KUBE_CONFIG_DEFAULT_LOCATION"))

    def test_default_configurations(self) -> None:
        """What C{load_kube_config} stores in a library does not remain."""
        kept = SimpleNamespace(_default="before")
        sys.modules["kubernetes.client.configuration"] = module(Configuration=kept)
        late = SimpleNamespace(_default=None)
        with found_by_kubeconfig(self.kubeconfig):
            self.assertEqual("before", kept._default)
            kept._default = "inside"
            sys.modules["kubernetes_asyncio.client.configuration"] = module(Configuration=late)
            late._default = "inside"
        self.assertEqual(("before", None), (kept._default, late._default))

    def test_kr8s(self) -> None:
        """kr8s, which returns an existing client if it can, has only clients of the context."""
        api = SimpleNamespace(_instances={"before": 1})
        sys.modules["kr8s._api"] = module(Api=api)
        with found_by_kubeconfig(self.kubeconfig):
            self.assertEqual({}, api._instances)
            api._instances["inside"] = 2
        self.assertEqual({"before": 1}, api._instances)
        del sys.modules["kr8s._api"]
        with found_by_kubeconfig(self.kubeconfig):
            api._instances["inside"] = 2
            sys.modules["kr8s._api"] = module(Api=api)
        self.assertEqual({}, api._instances)

    def test_names(self) -> None:
        """The name of the API server in a cluster is resolved, for its port."""
        calls: list[tuple[Any, ...]] = []
        self.patch(socket, "getaddrinfo", lambda *arguments, **_: calls.append(arguments))
        with found_in_cluster("127.0.0.1", 4711, self.account):
            socket.getaddrinfo("kubernetes.default.svc", 443, type=socket.SOCK_STREAM)
            socket.getaddrinfo(b"kubernetes.default", "https")
            socket.getaddrinfo("kubernetes.default.svc", 80)
            socket.getaddrinfo("example.com", 443, 0, socket.SOCK_STREAM)
        self.assertEqual(
            [
                ("127.0.0.1", 4711),
                ("127.0.0.1", 4711),
                ("kubernetes.default.svc", 80),
                ("example.com", 443, 0, socket.SOCK_STREAM),
            ],
            calls,
        )
