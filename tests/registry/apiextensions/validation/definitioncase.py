"""Definitions of custom resources."""

from __future__ import annotations

from typing import Any

import orjson

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.apiextensions.strategy import CustomResourceDefinitionStrategy
from kubetwist.schema.structural import OBJECT_META
from tests.schema.release import definitions

TEXT = {"type": "string"}


def copy(obj: dict[str, Any]) -> dict[str, Any]:
    """The same again."""
    again: dict[str, Any] = orjson.loads(orjson.dumps(obj))
    return again


class DefinitionTestCase(SynchronousTestCase):
    """A test of the strategy of definitions."""

    def setUp(self) -> None:
        """Make it."""
        self.strategy = CustomResourceDefinitionStrategy(definitions().struct(OBJECT_META))

    def made(self, crd: dict[str, Any]) -> dict[str, Any]:
        """A definition as it is before it is validated."""
        crd = copy(crd)
        self.strategy.default(crd)
        self.strategy.prepare_for_create(crd)
        return crd

    def told(self, crd: dict[str, Any]) -> list[tuple[str, str]]:
        """Field and message of all that is wrong with a new definition."""
        return [(cause.field, cause.message) for cause in self.strategy.validate(self.made(crd))]

    def fields(self, crd: dict[str, Any]) -> list[str]:
        """Where a new definition is wrong."""
        return [field for field, _ in self.told(crd)]


TEXT = {"type": "string"}
