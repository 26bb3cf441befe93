"""Tests for L{kubetwist.admission_plugins.podsecurity.configuration}."""

from __future__ import annotations

from kubetwist.admission_plugins.pluginconfig import InvalidConfiguration
from tests.admission_plugins.fakes import pod
from tests.admission_plugins.podsecurity.plugintools import PodSecurityTestCase


class ConfigurationTests(PodSecurityTestCase):
    """Tests for L{load}."""

    def test_invalid(self) -> None:
        """An invalid value is reported with its path."""
        for configuration, text in (
            ({"defaults": {"enforce": "x"}}, 'defaults.enforce: Invalid value: "x": must be one of privileged'),
            ({"defaults": {"warn-version": "x"}}, 'defaults.warn-version: Invalid value: "x": must be "latest"'),
            ({"exemptions": {"usernames": [""]}}, 'exemptions.usernames[0]: Invalid value: "": username must not be'),
            ({"exemptions": {"namespaces": ["a", "a"]}}, 'exemptions.namespaces[1]: Duplicate value: "a"'),
            ({"exemptions": {"namespaces": ["A"]}}, 'exemptions.namespaces[0]: Invalid value: "A"'),
            ({"exemptions": {"runtimeClasses": ["_"]}}, 'exemptions.runtimeClasses[0]: Invalid value: "_"'),
            ({"exemptions": {"users": []}}, 'unknown field "exemptions.users"'),
            ({"defaults": {"enforce": 1}}, "defaults.enforce: expected a string"),
            ({"exemptions": {"usernames": "a"}}, "exemptions.usernames: expected a list"),
            ({"kind": "Other"}, 'no kind "Other" is registered'),
        ):
            with self.assertRaises(InvalidConfiguration) as raised:
                self.plugin(configuration)
            self.assertIn(text, str(raised.exception))

    def test_versions(self) -> None:
        """Configurations of all versions are read."""
        for version in ("v1alpha1", "v1beta1", "v1"):
            self.plugin({"apiVersion": f"pod-security.admission.config.k8s.io/{version}"})

    def test_release(self) -> None:
        """The latest version is the version of the release that the server emulates."""
        self.context.release = "1.33"
        self.labels(enforce="baseline")
        probed = pod()
        probed["spec"]["containers"][0]["livenessProbe"] = {"tcpSocket": {"host": "h", "port": 1}}
        self.validate(self.plugin(), self.write(probed))
        self.context.release = "1.34"
        self.assertIn("probe or lifecycle host", self.error_text(self.plugin(), self.write(probed)))
