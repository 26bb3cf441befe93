"""Tests for custom resources in several versions that a plugin converts, over HTTP in memory."""

from __future__ import annotations

from typing import Any

import orjson

from zope.interface.verify import verifyObject

from kubetwist.interfaces import IConversionPlugin
from kubetwist.registry.customresources.conversion import TIMEOUT
from kubetwist.registry.customresources.crd import PLUGIN_ANNOTATION
from tests.resources.customserver import DEFINITIONS
from tests.resources.hostandport import NEW, OLD, ConversionTestCase, old
from tests.resources.server import events


def new(name: str, host: str = "there", port: int = 2) -> dict[str, Any]:
    """Return an object in version 2."""
    return {
        "kind": "Kite",
        "apiVersion": "example.com/v2",
        "metadata": {"name": name},
        "spec": {"host": host, "port": port},
    }


class ConversionTests(ConversionTestCase):
    """Tests for L{kubetwist.registry.customresources.conversion} with HTTP requests."""

    def test_interface(self) -> None:
        """The plugin in these tests implements the interface."""
        verifyObject(IConversionPlugin, self.plugin)

    def test_read(self) -> None:
        """An object is read in the version of the path; it is converted once for many reads."""
        self.define()
        made = self.ask("POST", OLD, old("a"))
        self.assertEqual(self.plugin.calls, [])
        for _ in range(2):
            result = self.ask("GET", f"{NEW}/a")
        self.assertEqual(result["spec"], {"host": "here", "port": 1})
        self.assertEqual(result["apiVersion"], "example.com/v2")
        self.assertEqual({**result["metadata"]}, made["metadata"])
        self.assertEqual(self.plugin.calls, [(1, "example.com/v2")])

    def test_write(self) -> None:
        """A write in another version is stored, validated and returned in the right versions."""
        self.define()
        made = self.ask("POST", NEW, new("b"))
        self.assertEqual(made["spec"], {"host": "there", "port": 2})
        self.assertEqual(self.ask("GET", f"{OLD}/b")["spec"], {"address": "there:2"})
        made["spec"]["port"] = 3
        self.assertEqual(self.ask("PUT", f"{NEW}/b", made)["spec"], {"host": "there", "port": 3})
        patch = {"spec": {"host": "far"}}
        content = "application/merge-patch+json"
        self.assertEqual(self.ask("PATCH", f"{NEW}/b", patch, Content_Type=content)["spec"], {"host": "far", "port": 3})
        self.assertEqual(self.ask("GET", f"{OLD}/b")["spec"], {"address": "far:3"})
        answer = self.ask("DELETE", f"{NEW}/b")
        self.assertEqual(answer["status"], "Success")

    def test_dry_run(self) -> None:
        """A dry run returns the version of the path, and stores nothing."""
        self.define()
        self.ask("POST", OLD, old("a"))
        self.assertEqual(self.ask("POST", f"{NEW}?dryRun=All", new("b"))["spec"], {"host": "there", "port": 2})
        content = "application/merge-patch+json"
        shown = self.ask("PATCH", f"{NEW}/a?dryRun=All", {"spec": {"port": 9}}, Content_Type=content)
        self.assertEqual(shown["spec"], {"host": "here", "port": 9})
        self.assertEqual(self.ask("GET", f"{OLD}/a")["spec"], {"address": "here:1"})

    def test_list_is_batched(self) -> None:
        """A list is converted in few calls, without the objects that are converted already."""
        self.define()
        for number in range(60):
            self.ask("POST", OLD, old(f"k{number}"))
        self.ask("GET", f"{NEW}/k0")
        self.plugin.calls.clear()
        client = self.server.client()
        client.send(f"GET {NEW} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        self.server.settle()
        self.assertEqual(self.plugin.calls, [(50, "example.com/v2"), (9, "example.com/v2")])
        body = orjson.loads(client.taken().partition(b"\r\n\r\n")[2])
        self.assertEqual({item["spec"]["host"] for item in body["items"]}, {"here"})
        self.assertEqual(len(body["items"]), 60)

    def test_table(self) -> None:
        """The cells of a Table show the converted object."""
        self.define()
        self.ask("POST", OLD, old("a"))
        table = self.ask("GET", NEW, Accept="application/json;as=Table;g=meta.k8s.io;v=v1")
        self.assertEqual(table["rows"][0]["cells"], ["a", "here"])

    def test_status(self) -> None:
        """Updates of the status are converted, too."""
        self.define()
        self.ask("POST", OLD, old("a"))
        self.assertEqual(self.ask("GET", f"{NEW}/a/status")["spec"], {"host": "here", "port": 1})

    def test_apply(self) -> None:
        """Server-side apply in another version merges with the converted object."""
        self.define()
        self.ask("POST", OLD, old("a", labels={"x": "y"}))
        applied = {**new("a"), "spec": {"port": 7}}
        content = "application/apply-patch+yaml"
        answer = self.ask("PATCH", f"{NEW}/a?fieldManager=me&force=true", applied, Content_Type=content)
        self.assertEqual(answer["spec"], {"host": "here", "port": 7})
        self.assertEqual(answer["metadata"]["labels"], {"x": "y"})
        owners = {
            (entry["manager"], entry["apiVersion"]): entry["fieldsV1"].get("f:spec")
            for entry in self.ask("GET", f"{OLD}/a")["metadata"]["managedFields"]
        }
        self.assertEqual(owners["me", "example.com/v2"], {"f:port": {}})
        # The port is a part of the address, so the first owner lost the address.
        self.assertNotIn("f:address", owners[min(set(owners) - {("me", "example.com/v2")})] or {})

    def test_failure(self) -> None:
        """A failed conversion is answered with a 500 with its reason; a watch ends with this error."""
        self.define()
        self.ask("POST", OLD, old("a", address="nowhere"))
        for path in (f"{NEW}/a", NEW):
            code, status = self.client.ask("GET", path)
            self.assertEqual(code, 500)
            self.assertEqual(
                status["message"],
                'conversion plugin "host-and-port" for example.com/v1, Kind=Kite failed: a has no port',
            )
            self.assertNotIn("reason", status)
        self.ask("DELETE", f"{OLD}/a")

    def test_bug(self) -> None:
        """An exception of a plugin is logged, and answered with its name and without a traceback."""
        self.define()
        self.ask("POST", OLD, old("a"))
        self.plugin.converted = lambda objects, api_version: 1 / 0  # type: ignore[method-assign, assignment, return-value]
        code, status = self.client.ask("GET", f"{NEW}/a")
        self.assertEqual(code, 500)
        self.assertIn('conversion plugin "host-and-port" for example.com/v1, Kind=Kite failed', status["message"])
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)

    def test_nonsense(self) -> None:
        """Results with another number, kind, version or identity are rejected."""
        self.define()
        self.ask("POST", OLD, old("a"))
        honest = self.plugin.converted

        def replace_result(change: Any) -> str:
            self.plugin.converted = lambda objects, version: change(honest(objects, version))  # type: ignore[method-assign]
            code, status = self.client.ask("GET", f"{NEW}/a")
            self.assertEqual(code, 500)
            return str(status["message"]).partition("Kind=Kite ")[2]

        self.assertEqual(replace_result(lambda objects: []), "returned 0 objects, expected 1")
        self.assertEqual(
            replace_result(lambda objects: [{**objects[0], "apiVersion": "example.com/v3"}]),
            "returned invalid object at index 0: invalid groupVersion (expected example.com/v2, "
            "received example.com/v3)",
        )
        self.assertEqual(
            replace_result(lambda objects: [{**objects[0], "kind": "Bird"}]),
            "returned invalid object at index 0: invalid kind (expected Kite, received Bird)",
        )
        self.assertEqual(
            replace_result(lambda objects: [{**objects[0], "metadata": {**objects[0]["metadata"], "name": "b"}}]),
            "returned invalid object: must have the same name: a != b",
        )
        self.assertEqual(
            replace_result(
                lambda objects: [{**objects[0], "metadata": {**objects[0]["metadata"], "labels": {"a": 1}}}]
            ),
            "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
        )
        self.assertIn(
            "a valid label must be",
            replace_result(
                lambda objects: [{**objects[0], "metadata": {**objects[0]["metadata"], "labels": {"a": "-"}}}]
            ),
        )
        self.assertEqual(
            replace_result(lambda objects: [{"kind": "Kite", "apiVersion": "example.com/v2"}]),
            "returned invalid metadata: missing metadata in converted object",
        )

    def test_metadata_is_kept(self) -> None:
        """Conversion may change only labels and annotations of the metadata."""
        self.define()
        self.ask("POST", OLD, old("a", finalizers=["example.com/x"]))
        honest = self.plugin.converted

        def change_metadata(objects: list[dict[str, Any]], version: str) -> list[dict[str, Any]]:
            for obj in objects:
                obj["metadata"] = {"name": "a", "namespace": "default", "uid": obj["metadata"]["uid"]}
                obj["metadata"]["labels"] = {"new": "one"}
            return honest(objects, version)

        self.plugin.converted = change_metadata  # type: ignore[method-assign]
        meta = self.ask("GET", f"{NEW}/a")["metadata"]
        self.assertEqual(meta["finalizers"], ["example.com/x"])
        self.assertEqual(meta["labels"], {"new": "one"})
        self.assertIn("resourceVersion", meta)

    def test_hanging_plugin(self) -> None:
        """A call of a plugin times out, and all waiting requests get an error."""
        self.define()
        self.ask("POST", OLD, old("a"))
        self.plugin.waiting = []
        client = self.server.client()
        client.send(f"GET {NEW}/a HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        self.assertEqual(client.taken(), b"")
        self.server.clock.advance(TIMEOUT + 2)
        self.assertIn(b"failed: it took longer than 30 s", client.taken())

    def test_storage_version_changes(self) -> None:
        """Objects stored before a change of the storage version are converted when they are read or written."""
        self.define()
        self.ask("POST", OLD, old("a"))
        crd = self.ask("GET", f"{DEFINITIONS}/kites.example.com")
        for version in crd["spec"]["versions"]:
            version["storage"] = version["name"] == "v2"
        self.ask("PUT", f"{DEFINITIONS}/kites.example.com", crd)
        self.server.settle()
        self.assertEqual(self.ask("GET", f"{OLD}/a")["spec"], {"address": "here:1"})
        self.assertEqual(self.plugin.calls, [])
        self.assertEqual(self.ask("GET", f"{NEW}/a")["spec"], {"host": "here", "port": 1})
        watcher = self.server.client()
        began = watcher.begin(f"{NEW}?watch=1&resourceVersion=0")
        content = "application/merge-patch+json"
        self.ask("PATCH", f"{OLD}/a", {"spec": {"address": "far:5"}}, Content_Type=content)
        self.ask("POST", OLD, old("b"))
        self.ask("DELETE", f"{NEW}/b")
        self.server.settle()
        result = events((began + watcher.taken()).partition(b"\r\n\r\n")[2])
        self.assertEqual(
            [(one["type"], one["object"]["spec"]) for one in result],
            [
                ("ADDED", {"host": "here", "port": 1}),
                ("MODIFIED", {"host": "far", "port": 5}),
                ("ADDED", {"host": "here", "port": 1}),
                ("DELETED", {"host": "here", "port": 1}),
            ],
        )

    def test_missing_plugin(self) -> None:
        """A plugin that is not installed is reported at the first conversion, not before."""
        self.define(plugin="absent")
        self.ask("POST", OLD, old("a"))
        code, status = self.client.ask("GET", f"{NEW}/a")
        self.assertEqual(code, 500)
        self.assertIn('conversion plugin "absent"', status["message"])
        self.assertIn("no plugin of that name is installed", status["message"])

    def test_opt_out(self) -> None:
        """Without the annotation, conversion only changes the apiVersion."""
        self.define()
        self.ask("POST", OLD, old("a"))
        content = "application/merge-patch+json"
        away = {"metadata": {"annotations": {PLUGIN_ANNOTATION: None}}}
        self.ask("PATCH", f"{DEFINITIONS}/kites.example.com", away, Content_Type=content)
        self.server.settle()
        self.assertEqual(self.ask("GET", f"{NEW}/a")["spec"], {})
        self.assertEqual(self.plugin.calls, [])
