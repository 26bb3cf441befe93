"""Tests for L{kubetwist.testing.recording.upstream}."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.client.kubeconfig import InvalidKubeconfig
from kubetwist.testing.recording.upstream import (
    ExecCommand,
    kubeconfig_paths,
    parse_exec_credential,
    read_upstream,
    run_exec_command,
)

VERSION = "client.authentication.k8s.io/v1"


def config(user: dict[str, Any], name: str = "one", **more: Any) -> dict[str, Any]:
    """Return a kubeconfig with one context."""
    return {
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example:6443/base"}}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        **more,
    }


class ReadUpstreamTests(SynchronousTestCase):
    """Tests for L{read_upstream} and L{kubeconfig_paths}."""

    def write(self, *configs: dict[str, Any]) -> list[Path]:
        """Write kubeconfigs, each into a folder."""
        paths = []
        for number, one in enumerate(configs):
            folder = Path(self.mktemp())
            folder.mkdir()
            (folder / "token").write_text(f"token {number}")
            (folder / "config").write_text(yaml.safe_dump(one))
            paths.append(folder / "config")
        return paths

    def test_contexts(self) -> None:
        """The context is chosen by name or by the file; files are relative to their kubeconfig."""
        paths = self.write(
            config({"tokenFile": "token"}, **{"current-context": "one"}),
            config({"tokenFile": "token"}, "two", **{"current-context": "two"}),
        )
        first = read_upstream(paths)
        self.assertEqual((first.config.url, first.config.token), ("https://one.example:6443/base", "token 0"))
        self.assertEqual(read_upstream(paths, "two").config.token, "token 1")
        missing = [Path("missing"), *paths]
        self.assertEqual(read_upstream(missing).config.token, "token 0")
        self.assertIn("no context 'three'", str(self.assertRaises(InvalidKubeconfig, read_upstream, paths, "three")))

    def test_first_wins(self) -> None:
        """Of entries with the same name, the one in the first file counts."""
        paths = self.write(config({"token": "a"}), config({"token": "b"}, **{"current-context": "one"}))
        self.assertEqual(read_upstream(paths).config.token, "a")

    def test_impersonation(self) -> None:
        """The impersonated user of a kubeconfig becomes header fields."""
        user = {"token": "t", "as": "alice", "as-groups": ["a", "b"], "as-user-extra": {"Scopes": ["x"]}}
        upstream = read_upstream(self.write(config(user, **{"current-context": "one"})))
        self.assertEqual(
            upstream.impersonation,
            (
                (b"impersonate-user", b"alice"),
                (b"impersonate-group", b"a"),
                (b"impersonate-group", b"b"),
                (b"impersonate-extra-scopes", b"x"),
            ),
        )

    def test_exec(self) -> None:
        """A command is relative to the kubeconfig if it is a path, and has the environment of its entry."""
        command = {
            "apiVersion": VERSION,
            "command": "./bin/login",
            "args": ["-x"],
            "env": [{"name": "A", "value": "b"}],
            "provideClusterInfo": True,
        }
        paths = self.write(config({"exec": command}, **{"current-context": "one"}))
        found = read_upstream(paths).command
        assert found is not None
        self.assertEqual(found.command, (str((paths[0].parent / "bin/login").absolute()), "-x"))
        self.assertEqual(found.environment, {"A": "b"})
        self.assertEqual(found.cluster, {"server": "https://one.example:6443/base", "insecure-skip-tls-verify": False})

    def test_malformed(self) -> None:
        """Errors name the file and the reason."""
        for user, reason in (
            ({"exec": {}}, "exec needs a command"),
            ({"exec": {"command": "x", "apiVersion": "v9"}}, "exec has the apiVersion 'v9'"),
            ({"auth-provider": {"name": "x"}}, "auth-provider of user"),
        ):
            paths = self.write(config(user, **{"current-context": "one"}))
            error = str(self.assertRaises(InvalidKubeconfig, read_upstream, paths))
            self.assertIn(reason, error)
            self.assertIn(str(paths[0]), error)
        missing = self.assertRaises(InvalidKubeconfig, read_upstream, [Path("missing")])
        self.assertEqual(str(missing), "no kubeconfig: missing does not exist")

    def test_paths(self) -> None:
        """The files come from the setting, $KUBECONFIG, or the home directory."""
        self.patch(os, "environ", {"HOME": "/home/me", "KUBECONFIG": "a::b"})
        self.assertEqual(kubeconfig_paths("c:d"), [Path("c"), Path("d")])
        self.assertEqual(kubeconfig_paths(""), [Path("a"), Path("b")])
        os.environ.pop("KUBECONFIG")
        self.assertEqual(kubeconfig_paths(""), [Path("/home/me/.kube/config")])


class ExecTests(SynchronousTestCase):
    """Tests for L{run_exec_command} and L{parse_exec_credential}."""

    def run_program(self, program: str) -> Any:
        """Run a Python program as a command."""
        command = ExecCommand((sys.executable, "-c", program), {"MINE": "yes"}, VERSION, "install it", {"server": "s"})
        return run_exec_command(command)

    def test_run(self) -> None:
        """The command receives its environment and the cluster, and its credentials are used."""
        found = self.run_program(
            "import json, os\n"
            "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
            "assert info['spec'] == {'interactive': False, 'cluster': {'server': 's'}}, info\n"
            "info['status'] = {'token': os.environ['MINE']}\n"
            "print(json.dumps(info))"
        )
        self.assertEqual(found.token, "yes")
        self.assertNotIn("yes", repr(found))

    def test_failures(self) -> None:
        """A command that fails or is missing is an error with its output, or with the hint."""
        error = self.assertRaises(InvalidKubeconfig, self.run_program, "import sys; sys.exit('no login')")
        self.assertIn("failed with exit code 1: no login", str(error))
        missing = ExecCommand(("kubetwist-missing-program",), {}, VERSION, "install it")
        error = self.assertRaises(InvalidKubeconfig, run_exec_command, missing)
        self.assertEqual(str(error), "exec: executable kubetwist-missing-program not found: install it")

    def test_expiry(self) -> None:
        """Credentials are current until shortly before they expire."""
        now = datetime(2026, 1, 1, tzinfo=UTC)

        def credential(expires: str) -> Any:
            status = {"token": "t", **({"expirationTimestamp": expires} if expires else {})}
            document = {"apiVersion": VERSION, "kind": "ExecCredential", "status": status}
            return parse_exec_credential(json.dumps(document).encode(), VERSION)

        self.assertTrue(credential("").is_current(now))
        self.assertTrue(credential("2026-01-01T00:01:00Z").is_current(now))
        self.assertFalse(credential("2026-01-01T00:00:20Z").is_current(now))
        self.assertFalse(credential("2026-01-01T00:01:00Z").is_current(now + timedelta(minutes=1)))

    def test_malformed(self) -> None:
        """Output of another form is refused."""
        head = {"apiVersion": VERSION, "kind": "ExecCredential"}
        for document, reason in (
            ("{", "not JSON"),
            ("[]", "not an ExecCredential"),
            ({**head, "apiVersion": "v9"}, "has the apiVersion 'v9'"),
            (head, "has no status"),
            ({**head, "status": {}}, "neither a token nor"),
            ({**head, "status": {"clientCertificateData": "x"}}, "neither a token nor"),
            ({**head, "status": {"token": 5}}, "token must be a string"),
            ({**head, "status": {"token": "t", "expirationTimestamp": "soon"}}, "not a time"),
        ):
            text = document if isinstance(document, str) else json.dumps(document)
            error = self.assertRaises(InvalidKubeconfig, parse_exec_credential, text.encode(), VERSION)
            self.assertIn(reason, str(error))
