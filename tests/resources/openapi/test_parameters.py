"""Tests for L{kubetwist.resources.openapi.parameters}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.resources.openapi.parameters import OPTIONS, PATCH, PRETTY, deletion, listing, name_of


class ParameterTests(SynchronousTestCase):
    """The parameters of operations."""

    def test_releases(self) -> None:
        """A parameter is documented from its first release on; all further parameters are in every release."""
        for of, name, minor in (
            (listing, "shardSelector", 36),
            (deletion, "ignoreStoreReadErrorWithClusterBreakingPotential", 32),
        ):
            before, after = of(minor - 1), of(minor)
            self.assertEqual([one.name for one in after if one not in before], [name])
            self.assertEqual([one for one in after if one.name != name], list(before))

    def test_table(self) -> None:
        """Every parameter has a description and a JSON type; names are unique within an operation."""
        for options, parameters in OPTIONS.items():
            self.assertEqual(len({one.key for one in parameters}), len(parameters), options)
            for one in parameters:
                self.assertTrue(one.description.strip(), one)
                self.assertIn(one.type, ("boolean", "integer", "string"), one)
        self.assertEqual([one.name for one in PRETTY], ["pretty"])
        self.assertIn("force", [one.name for one in PATCH])

    def test_names(self) -> None:
        """The name of an object is part of its path."""
        self.assertEqual((name_of("Pod").place, name_of("Pod").description), ("path", "name of the Pod"))
