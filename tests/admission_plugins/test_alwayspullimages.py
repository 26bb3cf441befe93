"""Tests for L{AlwaysPullImages}."""

from __future__ import annotations

import orjson

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.alwayspullimages import AlwaysPullImages
from kubetwist.interfaces import IMutatingAdmission, IValidatingAdmission
from tests.admission_plugins.fakes import PluginTestCase, every_container, write

CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")


class AlwaysPullImagesTests(PluginTestCase):
    """Tests for L{AlwaysPullImages}."""

    plugin = AlwaysPullImages()

    def test_every_container(self) -> None:
        """Containers of every kind and image volumes get the pull policy Always."""
        verifyObject(IMutatingAdmission, self.plugin)
        verifyObject(IValidatingAdmission, self.plugin)
        obj = every_container(imagePullPolicy="Never")
        obj["spec"]["volumes"] = [{"name": "v", "image": {"pullPolicy": "IfNotPresent"}}, {"name": "e", "emptyDir": {}}]
        request = write(obj)
        spec = self.admit_twice(self.plugin, request)["spec"]
        for kind in CONTAINER_LISTS:
            self.assertEqual([one["imagePullPolicy"] for one in spec[kind]], ["Always"], kind)
        self.assertEqual(
            spec["volumes"], [{"name": "v", "image": {"pullPolicy": "Always"}}, {"name": "e", "emptyDir": {}}]
        )
        self.validate(self.plugin, request)

    def test_changed_later(self) -> None:
        """A pull policy that another plugin has changed is rejected, for containers of every kind."""
        for kind in CONTAINER_LISTS:
            obj = every_container(imagePullPolicy="Always")
            obj["spec"][kind][0]["imagePullPolicy"] = "Never"
            self.assertEqual(
                self.error_text(self.plugin, write(obj)),
                f'spec.{kind}[0].imagePullPolicy: Unsupported value: "Never": supported values: "Always"',
            )

    def test_updates(self) -> None:
        """An update without new images is not changed, so that existing pods can be updated."""
        old = every_container(imagePullPolicy="Never")
        same = orjson.loads(orjson.dumps(old))
        self.assertEqual(self.admit(self.plugin, write(same, operation="UPDATE", old=old)), old)
        self.validate(self.plugin, write(same, operation="UPDATE", old=old))
        for kind in CONTAINER_LISTS:
            changed = orjson.loads(orjson.dumps(old))
            changed["spec"][kind][0]["image"] = "new"
            spec = self.admit(self.plugin, write(changed, operation="UPDATE", old=old))["spec"]
            self.assertEqual(spec["containers"][0]["imagePullPolicy"], "Always")
