"""Tests of an admission plugin in Python, which the server of C{kube_api_twisted} finds as an installed plugin."""

from __future__ import annotations

import pytest
import pytest_twisted

import treq
from twisted.internet import reactor
from twisted.internet.task import deferLater
from zope.interface import implementer

from kubetwist.admission import plugins
from kubetwist.admission.factory import AdmissionPluginFactory
from kubetwist.api.admission import AdmissionAttributes
from kubetwist.interfaces import IAdmissionPluginFactory, IMutatingAdmission, IValidatingAdmission
from kubetwist.testing import InProcessServer

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@implementer(IMutatingAdmission, IValidatingAdmission)
class Greeting:
    """Adds a greeting to config maps, after a wait, and rejects those without a name in their data."""

    name = "Greeting"
    resources = ("configmaps",)

    def handles(self, operation: str) -> bool:
        """Return whether the operation is CREATE."""
        return operation == "CREATE"

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """Add the greeting."""
        await deferLater(reactor, 0)  # type: ignore[arg-type]
        assert attributes.object is not None
        data = attributes.object.setdefault("data", {})
        if "name" in data:
            data["greeting"] = f"Hello, {data['name']}!"

    def validate(self, attributes: AdmissionAttributes) -> None:
        """Reject config maps of the administrator without a name."""
        assert attributes.object is not None
        if attributes.user.name == "kubetwist-test-admin" and "greeting" not in attributes.object["data"]:
            raise attributes.forbidden("data.name is required")


@pytest.fixture
def greeting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the plugin for servers that start after this fixture."""
    factory = AdmissionPluginFactory("Greeting", f"{__name__}:Greeting")
    found = plugins.getPlugins(IAdmissionPluginFactory)
    factories = [*found, factory]
    monkeypatch.setattr(plugins, "getPlugins", lambda interface: factories)


@pytest_twisted.ensureDeferred
async def test_plugin(greeting: None, kube_api_twisted: InProcessServer) -> None:
    """A plugin changes an object before it is stored, and rejects another one with 403."""
    client = kube_api_twisted.connection.treq()
    created = await client.post(CONFIG_MAPS, json={"metadata": {"name": "one"}, "data": {"name": "world"}})
    assert (await treq.json_content(created))["data"]["greeting"] == "Hello, world!"
    rejected = await client.post(CONFIG_MAPS, json={"metadata": {"name": "two"}})
    assert rejected.code == 403
    assert "data.name is required" in (await treq.json_content(rejected))["message"]
