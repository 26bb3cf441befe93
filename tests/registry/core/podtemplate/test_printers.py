"""Tests of L{kubetwist.registry.core.podtemplate.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, TEMPLATE, made


class RowTests(SynchronousTestCase):
    """Tests of rows of PodTemplates."""

    def test_template(self) -> None:
        """A row contains containers, images and labels, but no age."""
        template = {**TEMPLATE, "metadata": {"labels": {"a": "b"}}}
        self.assertEqual(cells("", "PodTemplate", made({"template": template}), NOW), ["x", "a,b", "a:1,b:2", "a=b"])
