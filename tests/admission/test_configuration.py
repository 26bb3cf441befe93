"""Tests for L{kubetwist.admission.configuration}."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase, TestCase

from kubetwist.admission.configuration import AdmissionConfigError, read_configurations
from kubetwist.server.errors import StartError
from kubetwist.testing.trial import KubeAPIMixin

HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n"


class ConfigurationTests(SynchronousTestCase):
    """--admission-control-config-file."""

    def setUp(self) -> None:
        """Create a directory."""
        self.folder = Path(self.mktemp())
        self.folder.mkdir()

    def file(self, name: str, text: str) -> str:
        """Write a file."""
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def read(self, text: str) -> dict[str, Any]:
        """Return the configurations in a file."""
        return read_configurations(self.file("admission.yaml", text))

    def problem(self, text: str) -> str:
        """Return the error for a file."""
        with self.assertRaises(AdmissionConfigError) as caught:
            self.read(text)
        self.assertNotIn("\n", str(caught.exception))
        return str(caught.exception).removeprefix("failed to read plugin config: ")

    def test_none(self) -> None:
        """Without a file or with an empty list there are no configurations."""
        self.assertEqual(read_configurations(""), {})
        self.assertEqual(self.read(HEAD), {})
        self.assertEqual(self.read(HEAD + "plugins: []"), {})

    def test_inline_and_path(self) -> None:
        """A plugin's configuration is inline or in another file; of two entries for a plugin, the first one is used."""
        self.file("other.yaml", "limit: 5")
        result = self.read(
            HEAD
            + "plugins:\n- {name: A, configuration: {kind: X, m: 1}}\n- {name: B, path: other.yaml}\n"
            + f"- {{name: C, path: {self.folder.resolve()}/other.yaml}}\n"
            + "- {name: A, configuration: {}}\n- name: D\n"
        )
        self.assertEqual(result, {"A": {"kind": "X", "m": 1}, "B": {"limit": 5}, "C": {"limit": 5}, "D": None})

    def test_legacy(self) -> None:
        """The legacy formats of two plugins are accepted."""
        value = {"podNodeSelectorPluginConfig": {"default": "a=b"}}
        result = self.read("podNodeSelectorPluginConfig:\n  default: a=b\n")
        self.assertEqual(result["PodNodeSelector"], value)

    def test_missing(self) -> None:
        """The error for an unreadable file has its path and the reason."""
        path = str(self.folder / "absent.yaml")
        with self.assertRaises(AdmissionConfigError) as caught:
            read_configurations(path)
        self.assertEqual(
            str(caught.exception),
            f'failed to read plugin config: unable to read admission control configuration from "{path}" '
            f"[open {path}: no such file or directory]",
        )
        text = self.problem(HEAD + "plugins: [{name: A, path: absent.yaml}]")
        self.assertIn(f"open {path}: no such file or directory", text)

    def test_invalid(self) -> None:
        """An invalid configuration is rejected with one line."""
        self.assertIn("Object 'Kind' is missing in 'a: b'", self.problem("a: b"))
        self.assertIn(
            'no kind "Foo" is registered for version "apiserver.config.k8s.io/v1" in scheme',
            self.problem("apiVersion: apiserver.config.k8s.io/v1\nkind: Foo"),
        )
        strict = 'strict decoding error: unknown field "more", unknown field "plugins[0].extra"'
        self.assertEqual(self.problem(HEAD + "more: 1\nplugins: [{name: A, extra: 1}]"), strict)
        for text in ("[", "- a", "3", HEAD + "plugins: 5", HEAD + "plugins: [a]", HEAD + "plugins: [{name: 3}]"):
            self.assertTrue(self.problem(text), text)


class StartTests(KubeAPIMixin, TestCase):
    """Tests of the configuration of a whole server."""

    async def test_configuration(self) -> None:
        """The file must exist and be valid for the plugin."""
        with self.assertRaises(StartError) as caught:
            await self.startKubeAPI("--admission-control-config-file=/absent.yaml")
        self.assertIn("open /absent.yaml: no such file or directory", str(caught.exception))
        path = Path(self.mktemp())
        path.write_text(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n"
            "- name: MutatingAdmissionWebhook\n  configuration:\n"
            "    apiVersion: apiserver.config.k8s.io/v1\n    kind: WebhookAdmissionConfiguration\n"
            "    kubeConfigFile: beside.yaml\n"
        )
        with self.assertRaises(StartError) as caught:
            await self.startKubeAPI(f"--admission-control-config-file={path}")
        self.assertEqual(
            str(caught.exception),
            'couldn\'t init admission plugin "MutatingAdmissionWebhook": kubeConfigFile: Invalid value: "beside.yaml": '
            "must be an absolute file path",
        )
