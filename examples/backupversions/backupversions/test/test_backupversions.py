"""Tests of the conversion, alone for generated objects and in a server."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SynchronousTestCase, TestCase

import backupversions
from backupversions.conversion import ANNOTATION, V1, V1BETA1, convert
from kubetwist.testing.conversion import ConverterHarness
from kubetwist.testing.trial import KubeAPIMixin

#: The speed of the machine does not matter.
untimed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

_text = st.text('a0* /:{}[]"\\\n\u00e9\U0001f600', max_size=12)
_counts = st.integers(0, 1 << 62)
_texts = st.dictionaries(_text, _text, min_size=1, max_size=3)
_metadata = st.fixed_dictionaries({}, optional={"annotations": _texts, "labels": _texts})
_status = st.sampled_from([{}, {"status": {"lastBackup": "2027-01-01T00:00:00Z"}}])


def objects(api_version: str, specs: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy of objects."""

    def make(metadata: Any, spec: Any, status: Any) -> Any:
        metadata = {"name": "nightly", **metadata}
        return {"apiVersion": api_version, "kind": "Backup", "metadata": metadata, "spec": spec, **status}

    return st.builds(make, _metadata, specs, _status)


new_objects = objects(
    V1,
    st.fixed_dictionaries(
        {"schedule": st.fixed_dictionaries({"cron": _text.filter(bool)}, optional={"timeZone": _text})},
        optional={
            "retention": st.fixed_dictionaries({}, optional={"daily": _counts, "weekly": _counts, "monthly": _counts})
        },
    ),
)
old_objects = objects(V1BETA1, st.fixed_dictionaries({"schedule": _text.filter(bool)}, optional={"keep": _counts}))
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | _text,
    lambda values: st.lists(values) | st.dictionaries(st.sampled_from(["schedule", "retention", "weekly"]), values),
)


def converted(obj: Any, *versions: str) -> Any:
    """Return an object after conversions to some versions, one after the other."""
    for version in versions:
        (obj,) = convert([deepcopy(obj)], version)
    return obj


class ConversionTests(SynchronousTestCase):
    """L{convert}."""

    def test_example(self) -> None:
        """Texts and numbers of v1beta1 are fields of objects in v1."""
        old = {
            "apiVersion": V1BETA1,
            "kind": "Backup",
            "metadata": {"name": "a"},
            "spec": {"schedule": "0 2 * * *", "keep": 7},
        }
        new = converted(old, V1)
        self.assertEqual(new["spec"], {"schedule": {"cron": "0 2 * * *"}, "retention": {"daily": 7}})
        new["spec"]["schedule"]["timeZone"] = "Europe/Berlin"
        new["spec"]["retention"]["weekly"] = 4
        back = converted(new, V1BETA1)
        self.assertEqual(back["spec"], old["spec"])
        lacking = {"retention": {"weekly": 4}, "schedule": {"timeZone": "Europe/Berlin"}}
        self.assertEqual(json.loads(back["metadata"]["annotations"][ANNOTATION]), lacking)

    @untimed
    @given(new_objects)
    def test_new(self, obj: Any) -> None:
        """An object of v1 is the same after a conversion to v1beta1 and back."""
        self.assertEqual(converted(obj, V1BETA1, V1), obj)

    @untimed
    @given(old_objects)
    def test_old(self, obj: Any) -> None:
        """An object of v1beta1 is the same after a conversion to v1 and back."""
        self.assertEqual(converted(obj, V1, V1BETA1), obj)

    @untimed
    @given(new_objects, old_objects)
    def test_old_client(self, new: Any, change: Any) -> None:
        """A client that replaces the spec in v1beta1 changes only the fields that v1beta1 has."""
        old = converted(new, V1BETA1)
        old["spec"] = change["spec"]
        spec = converted(old, V1)["spec"]
        self.assertEqual(spec["schedule"], {**new["spec"]["schedule"], "cron": change["spec"]["schedule"]})
        retention = {**new["spec"].get("retention", {}), "daily": change["spec"].get("keep")}
        found = {"daily": None, **spec.get("retention", {})}
        self.assertEqual(found, retention)

    @untimed
    @given(old_objects, any_json.map(json.dumps) | _text | st.sampled_from(["[" * 100_000]))
    def test_foreign_annotation(self, obj: Any, text: str) -> None:
        """An annotation that a client wrote does not make the object unreadable, and adds no unknown fields."""
        obj["metadata"].setdefault("annotations", {})[ANNOTATION] = text
        spec = converted(obj, V1)["spec"]
        self.assertLessEqual(spec.keys(), {"schedule", "retention"})
        self.assertLessEqual(spec["schedule"].keys(), {"cron", "timeZone"})
        self.assertEqual(spec["schedule"]["cron"], obj["spec"]["schedule"])
        for name, count in spec.get("retention", {}).items():
            self.assertIn(name, ("daily", "weekly", "monthly"))
            self.assertIs(type(count), int)

    def test_versions(self) -> None:
        """An object in the desired version is unchanged; for an unknown version there is an error."""
        obj = {"apiVersion": V1, "kind": "Backup", "metadata": {"name": "a"}, "spec": {"schedule": {"cron": "x"}}}
        self.assertEqual(converted(obj, V1), obj)
        error = self.assertRaises(ValueError, converted, obj, "example.org/v2")
        self.assertEqual(str(error), "there is no conversion from example.org/v1 to example.org/v2")


class PluginTests(SynchronousTestCase):
    """The installed plugin, with the checks of a server."""

    def test_round_trip(self) -> None:
        """The server accepts the conversions: they change no metadata but annotations."""
        meta = {"name": "a", "namespace": "default", "labels": {"a": "b"}, "annotations": {"c": "d"}}
        spec = {"schedule": {"cron": "0 2 * * *", "timeZone": "Europe/Berlin"}, "retention": {"weekly": 4}}
        new = {"apiVersion": V1, "kind": "Backup", "metadata": meta, "spec": spec}
        old = {"apiVersion": V1BETA1, "kind": "Backup", "metadata": meta, "spec": {"schedule": "@daily", "keep": 7}}
        harness = ConverterHarness("backups")
        harness.check_round_trip([new], [V1BETA1])
        harness.check_round_trip([old], [V1])

    def test_many(self) -> None:
        """Many objects are converted in their order."""
        names = [f"a{number}" for number in range(120)]
        old = {"apiVersion": V1BETA1, "kind": "Backup", "spec": {"schedule": "@daily"}}
        found = ConverterHarness("backups").convert([{**old, "metadata": {"name": name}} for name in names], V1)
        self.assertEqual([obj["metadata"]["name"] for obj in found], names)


class ServerTests(KubeAPIMixin, TestCase):
    """A server with the definition."""

    async def ask(self, method: str, version: str, name: str = "", body: Any = None) -> Any:
        """Send a request of the administrator, which must succeed; return the body of the response."""
        path = f"/apis/{version}/namespaces/default/backups{name}"
        code, answer = await deferToThread(self.server.request, method, path, body)
        self.assertLess(code, 300, answer)
        return answer

    async def test_versions(self) -> None:
        """Objects of both versions are served in both, and a client of v1beta1 does not remove fields of v1."""
        self.server = await self.startKubeAPI()
        await self.server.load(Path(backupversions.__file__).with_name("crd.yaml"))
        retention = {"daily": 7, "weekly": 4}
        spec = {"schedule": {"cron": "0 2 * * *", "timeZone": "Europe/Berlin"}, "retention": retention}
        for version, name, fields in ((V1, "new", spec), (V1BETA1, "old", {"schedule": "@daily"})):
            body = {"apiVersion": version, "kind": "Backup", "metadata": {"name": name}, "spec": fields}
            await self.ask("POST", version, "", body)
        found = await self.ask("GET", V1BETA1)
        self.assertEqual(
            [item["spec"] for item in found["items"]], [{"schedule": "0 2 * * *", "keep": 7}, {"schedule": "@daily"}]
        )
        found = await self.ask("GET", V1, "/old")
        self.assertEqual(found["spec"], {"schedule": {"cron": "@daily"}})
        changed = await self.ask("GET", V1BETA1, "/new")
        changed["spec"]["keep"] = 14
        await self.ask("PUT", V1BETA1, "/new", changed)
        found = await self.ask("GET", V1, "/new")
        self.assertEqual(found["spec"], {**spec, "retention": {**retention, "daily": 14}})
        self.assertNotIn("annotations", found["metadata"])
