"""Tests for L{kubetwist.controllers.aggregation.autoregister}."""

from __future__ import annotations

from kubetwist.registry.apiregistration.bootstrap import AUTOMANAGED
from tests.controllers.aggregation.registrationcase import SERVICES, RegistrationTestCase
from tests.resources.customserver import DEFINITIONS, definition


class RegistrationTests(RegistrationTestCase):
    """APIServices of local group-versions."""

    def test_defined_and_deleted(self) -> None:
        """A group-version is registered while a definition contains it."""
        self.start_controller()
        self.server.define(self.client, definition())
        self.assertEqual(self.names(), ["v1.example.com"])
        found = self.find("v1.example.com")
        self.assertEqual(found["metadata"]["labels"], {AUTOMANAGED: "true"})
        self.assertEqual((found["spec"]["groupPriorityMinimum"], found["spec"]["versionPriority"]), (1000, 100))
        self.client.ask("DELETE", f"{DEFINITIONS}/kites.example.com")
        self.assertEqual(self.names(), [])

    def test_names_not_accepted(self) -> None:
        """A group-version is registered even if the names of its definition are not accepted."""
        self.start_controller()
        self.server.define(self.client, definition())
        second = definition(None, "boats", "Kite")
        second["spec"]["versions"][0]["name"] = "v7"
        self.server.define(self.client, second)
        self.assertEqual(self.names(), ["v1.example.com", "v7.example.com"])

    def test_start(self) -> None:
        """Existing definitions and built-in groups are registered at the start."""
        self.server.define(self.client, definition())
        self.assertEqual(self.names(), [])
        self.start_controller("v1", "apps/v1", "apiregistration.k8s.io/v1")
        self.assertEqual(self.names(), ["v1.", "v1.apps", "v1.example.com"])
        found = self.find("v1.apps")
        self.assertEqual(found["metadata"]["labels"], {AUTOMANAGED: "onstart"})
        self.assertEqual(
            found["spec"], {"group": "apps", "version": "v1", "groupPriorityMinimum": 17800, "versionPriority": 15}
        )
        self.assertEqual(found["status"]["conditions"][0]["reason"], "Local")

    def test_second_start(self) -> None:
        """A second start writes nothing."""
        self.successResultOf(self.start_controller("v1", "apps/v1").stop())
        revision = self.services.cache.revision
        self.start_controller("v1", "apps/v1")
        self.names(1)
        self.assertEqual(self.services.cache.revision, revision)

    def test_custom_is_synced_continuously(self) -> None:
        """The APIService of a custom group-version is recreated after deletion, and corrected after changes."""
        self.start_controller()
        self.server.define(self.client, definition())
        self.names()
        self.api.ask("DELETE", f"{SERVICES}/v1.example.com")
        self.assertEqual(self.names(), ["v1.example.com"])
        self.patch("v1.example.com", {"spec": {"groupPriorityMinimum": 5}})
        self.names()
        self.assertEqual(self.find("v1.example.com")["spec"]["groupPriorityMinimum"], 1000)

    def test_label_removed(self) -> None:
        """An APIService without the label is not changed, and is kept when the definition is deleted."""
        self.start_controller()
        self.make("example.com", service={"namespace": "a", "name": "b"})
        self.server.define(self.client, definition())
        self.names(1)
        self.assertEqual(self.find("v1.example.com")["spec"]["groupPriorityMinimum"], 7)
        self.client.ask("DELETE", f"{DEFINITIONS}/kites.example.com")
        self.assertEqual(self.names(1), ["v1.example.com"])

    def test_built_in_is_synced_at_start(self) -> None:
        """
        The APIService of a built-in version is synced at each start only. Later changes are kept until the next start.
        """
        first = self.start_controller("apps/v1", "batch/v1")
        self.api.ask("DELETE", f"{SERVICES}/v1.batch")
        self.patch("v1.apps", {"spec": {"groupPriorityMinimum": 5}})
        self.assertEqual(self.names(1), ["v1.apps"])
        self.assertEqual(self.find("v1.apps")["spec"]["groupPriorityMinimum"], 5)
        self.successResultOf(first.stop())
        self.start_controller("apps/v1", "batch/v1")
        self.assertEqual(self.names(), ["v1.apps", "v1.batch"])
        self.assertEqual(self.find("v1.apps")["spec"]["groupPriorityMinimum"], 17800)

    def test_not_served_any_more(self) -> None:
        """APIServices of earlier starts without a served version are deleted at the start. Other ones are kept."""
        self.make("gone.example.com", "onstart")
        self.make("custom.example.com", "true")
        self.make("mine.example.com")
        self.start_controller("apps/v1")
        self.assertEqual(self.names(1), ["v1.apps", "v1.mine.example.com"])
        self.make("later.example.com", "onstart")
        self.make("managed.example.com", "true")
        self.assertEqual(self.names(1), ["v1.apps", "v1.later.example.com", "v1.mine.example.com"])
