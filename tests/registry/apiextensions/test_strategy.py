"""Tests for L{kubetwist.registry.apiextensions.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import copy, defaulted, made

G, K = "apiextensions.k8s.io", "CustomResourceDefinition"


class StrategyTests(SynchronousTestCase):
    """Tests for the strategy of CRDs."""

    def spec(self, *stored: str, **parts: object) -> dict[str, object]:
        """Return a spec with versions v1 and v2, some of which are stored."""
        versions = [{"name": name, "storage": name in stored} for name in ("v1", "v2")]
        return {"group": "g.io", "names": {"kind": "Kite", "plural": "kites"}, "versions": versions, **parts}

    def test_names(self) -> None:
        """The default names are derived from the kind."""
        names = defaulted(G, K, spec=self.spec("v1"))["spec"]["names"]
        self.assertEqual((names["singular"], names["listKind"]), ("kite", "KiteList"))

    def test_conversion(self) -> None:
        """The default conversion is None; the service of a webhook has a default port."""
        self.assertEqual(defaulted(G, K, spec=self.spec("v1"))["spec"]["conversion"], {"strategy": "None"})
        webhook = {"clientConfig": {"service": {"name": "s", "namespace": "n"}}, "conversionReviewVersions": ["v1"]}
        conversion = {"strategy": "Webhook", "webhook": webhook}
        result = defaulted(G, K, spec=self.spec("v1", conversion=conversion))["spec"]["conversion"]
        self.assertEqual(result["webhook"]["clientConfig"]["service"]["port"], 443)

    def test_status(self) -> None:
        """A new CRD has no accepted names, and one stored version."""
        status = made(G, K, spec=self.spec("v2"), status={"storedVersions": ["v9"]})["status"]
        self.assertEqual(status["storedVersions"], ["v2"])
        self.assertEqual(status["acceptedNames"], {"plural": "", "kind": ""})

    def test_stored_versions(self) -> None:
        """A new storage version is added once to the stored versions."""
        strategy = strategy_for(G, K)
        old = made(G, K, spec=self.spec("v1"))
        new = {**copy(old), "spec": made(G, K, spec=self.spec("v2"))["spec"]}
        strategy.prepare_for_update(new, old)
        self.assertEqual(new["status"]["storedVersions"], ["v1", "v2"])
        again = copy(new)
        strategy.prepare_for_update(again, new)
        self.assertEqual(again["status"]["storedVersions"], ["v1", "v2"])

    def test_name(self) -> None:
        """The name of a CRD is its plural and group."""
        names = strategy_for(G, K).name_validator(made(G, K, spec=self.spec("v1")))
        self.assertEqual(list(names("kites.g.io", False)), [])
        self.assertEqual(len(names("kites.other.io", False)), 1)
