"""Admission that can not be, at the start of a server."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import TestCase

from kubetwist.server.errors import StartError
from kubetwist.testing.trial import KubeAPIMixin


class StartTests(KubeAPIMixin, TestCase):
    """What stops the start, with one line."""

    async def test_names(self) -> None:
        """Plugins that are not there can not be switched on or off."""
        for flag in ("enable", "disable"):
            with self.assertRaises(StartError) as caught:
                await self.startKubeAPI(f"--{flag}-admission-plugins=Nope")
            self.assertEqual(str(caught.exception), f'{flag}-admission-plugins plugin "Nope" is unknown')

    async def test_configuration(self) -> None:
        """A configuration must be there, and make sense to the plugin that it is for."""
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
