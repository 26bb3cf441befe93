"""Base class of tests of CustomResourceDefinitions."""

from __future__ import annotations

from typing import Any

import orjson

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.apiextensions.strategy import CustomResourceDefinitionStrategy
from kubetwist.schema.structural import OBJECT_META
from tests.schema.release import definitions

TEXT = {"type": "string"}


def copy(obj: dict[str, Any]) -> dict[str, Any]:
    """Return a copy."""
    again: dict[str, Any] = orjson.loads(orjson.dumps(obj))
    return again


class DefinitionTestCase(SynchronousTestCase):
    """A test case for the strategy of CRDs."""

    def setUp(self) -> None:
        """Create the strategy."""
        self.strategy = CustomResourceDefinitionStrategy(definitions().struct(OBJECT_META))

    def made(self, crd: dict[str, Any]) -> dict[str, Any]:
        """Return a CRD as it is before validation."""
        crd = copy(crd)
        self.strategy.default(crd)
        self.strategy.prepare_for_create(crd)
        return crd

    def errors(self, crd: dict[str, Any]) -> list[tuple[str, str]]:
        """Return field and message of all errors of a new CRD."""
        return [(cause.field, cause.message) for cause in self.strategy.validate(self.made(crd))]

    def fields(self, crd: dict[str, Any]) -> list[str]:
        """Return the fields with errors of a new CRD."""
        return [field for field, _ in self.errors(crd)]


TEXT = {"type": "string"}
