"""Tests for L{kubetwist.resources.discovery.endpoints} and the documents it serves."""

from __future__ import annotations

import gzip
import json
from types import SimpleNamespace
from typing import Any

import yaml
from attrs import evolve

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupVersion
from kubetwist.resources.discovery.documents import aggregated_discovery, api_resource_list
from kubetwist.resources.documents import install_documents, install_group_not_found
from kubetwist.resources.mux import DelegatingMux, NotFound
from kubetwist.resources.servedresources import Priority, ServedResources

from ..apps import ask
from ..fakeservedresources import ALL_VERBS, APPS, SCALE, custom, served_resources

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=%s;as=APIGroupDiscoveryList"


def server(groups: ServedResources, beta: bool = False) -> DelegatingMux:
    """Return a mux with the paths of discovery."""
    mux = DelegatingMux("test", NotFound())
    definitions: Any = SimpleNamespace(minor="1.32" if beta else "1.36")
    reactor: Any = Clock()
    install_documents(mux, groups, definitions, reactor, lambda: "192.0.2.1:6443", mux.listed_paths)
    install_group_not_found(mux, groups)
    return mux


class DiscoveryCase(SynchronousTestCase):
    """Test case that requests documents over HTTP in memory."""

    def setUp(self) -> None:
        """Create a server for each test."""
        self.groups = served_resources()
        self.mux = server(self.groups)

    def ask(self, method: str, path: str, **headers: str) -> tuple[int, Any, bytes]:
        """Return the code, the headers and the body of a response."""
        return ask(self.mux, method, path, **headers)

    def get(self, path: str, **headers: str) -> Any:
        """Return the decoded JSON of a successful response."""
        code, _, body = self.ask("GET", path, **headers)
        self.assertEqual(code, 200, body)
        return json.loads(body)

    def refused(self, method: str, path: str, **headers: str) -> tuple[int, str, str]:
        """Return the code, reason and message of a Status."""
        code, _, body = self.ask(method, path, **headers)
        status = json.loads(body)
        self.assertEqual((status["kind"], status["code"]), ("Status", code))
        return code, status["reason"], status["message"]


class PlainDiscoveryTests(DiscoveryCase):
    """The unaggregated documents."""

    def test_core_versions(self) -> None:
        """C{/api} has the versions of the core group and the server's address, with or without a trailing slash."""
        expected = {
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "192.0.2.1:6443"}],
        }
        self.assertEqual(self.get("/api"), expected)
        self.assertEqual(self.get("/api/"), expected)

    def test_groups(self) -> None:
        """C{/apis} lists all groups except the core group, each with its versions, the preferred one first."""
        groups = self.get("/apis")["groups"]
        self.assertEqual([group["name"] for group in groups], ["apps", "autoscaling"])
        self.assertEqual(
            groups[1],
            {
                "name": "autoscaling",
                "versions": [
                    {"groupVersion": "autoscaling/v2", "version": "v2"},
                    {"groupVersion": "autoscaling/v1", "version": "v1"},
                ],
                "preferredVersion": {"groupVersion": "autoscaling/v2", "version": "v2"},
            },
        )

    def test_group(self) -> None:
        """C{/apis/<group>} is one entry of that list, with a kind."""
        group = self.get("/apis/apps")
        self.assertEqual((group["kind"], group["apiVersion"], group["name"]), ("APIGroup", "v1", "apps"))

    def test_resources(self) -> None:
        """The document of a version lists its resources; a kind of another group-version has its group and version."""
        document = self.get("/apis/apps/v1")
        self.assertEqual((document["apiVersion"], document["groupVersion"]), ("v1", "apps/v1"))
        self.assertEqual(
            document["resources"],
            [
                {
                    "name": "deployments",
                    "singularName": "deployment",
                    "namespaced": True,
                    "kind": "Deployment",
                    "verbs": list(ALL_VERBS),
                    "shortNames": ["deploy"],
                    "categories": ["all"],
                    "storageVersionHash": "hash",
                },
                {
                    "name": "deployments/scale",
                    "singularName": "",
                    "namespaced": True,
                    "group": "autoscaling",
                    "version": "v1",
                    "kind": "Scale",
                    "verbs": ["get", "patch", "update"],
                },
            ],
        )

    def test_core_has_no_version(self) -> None:
        """The document of the core group has no apiVersion, for compatibility."""
        self.assertNotIn("apiVersion", self.get("/api/v1"))

    def test_changes(self) -> None:
        """Resources that are added or removed at run time change the next response."""
        self.groups.add(custom("lamps.example.com", "v1"))
        self.assertEqual(self.get("/apis")["groups"][-1]["name"], "lamps.example.com")
        self.groups.remove_group_version(APPS)
        self.assertEqual(self.ask("GET", "/apis/apps")[0], 404)
        self.assertEqual(self.refused("GET", "/apis/apps/v1")[0], 404)

    def test_yaml(self) -> None:
        """Documents are available as YAML."""
        code, headers, body = self.ask("GET", "/api/v1", accept="application/yaml")
        self.assertEqual((code, headers.getRawHeaders("content-type")), (200, ["application/yaml"]))
        self.assertEqual(yaml.safe_load(body), self.get("/api/v1"))

    def test_pretty(self) -> None:
        """Clients that request it, or that look like browsers or curl, get indented JSON."""
        for path, agent in (("/apis?pretty=true", "x"), ("/apis", "curl/8")):
            body = self.ask("GET", path, user_agent=agent)[2]
            self.assertTrue(body.startswith(b'{\n  "kind": "APIGroupList"'))
        self.assertTrue(self.ask("GET", "/apis", user_agent="x")[2].startswith(b'{"kind":"APIGroupList",'))

    def test_compressed(self) -> None:
        """Documents are compressed for clients that accept gzip, unless they are very small."""
        _, headers, body = self.ask("GET", "/apis", accept_encoding="gzip")
        self.assertLess(len(body), 1400)
        self.assertIsNone(headers.getRawHeaders("content-encoding"))
        for number in range(20):
            self.groups.add(custom(f"g{number}.example.com", "v1"))
        code, headers, body = self.ask("GET", "/apis", accept_encoding="gzip")
        self.assertEqual((code, headers.getRawHeaders("vary")), (200, ["Accept-Encoding"]))
        document = self.get("/apis")
        self.assertEqual(len(document["groups"]), 22)
        self.assertEqual(headers.getRawHeaders("content-encoding"), ["gzip"])
        self.assertEqual(json.loads(gzip.decompress(body)), document)


class MethodTests(DiscoveryCase):
    """Methods, and unknown paths."""

    def test_any_method(self) -> None:
        """C{/}, C{/apis} and groups accept any method."""
        for path in ("/", "/index.html", "/apis", "/apis/", "/apis/apps"):
            for method in ("POST", "OPTIONS", "DELETE"):
                self.assertEqual(self.ask(method, path)[0], 200)

    def test_get_only(self) -> None:
        """Documents behind the router support GET only, not even HEAD."""
        for path in ("/api", "/api/v1", "/apis/apps/v1/"):
            code, reason, message = self.refused("POST", path)
            self.assertEqual((code, reason), (405, "MethodNotAllowed"))
            self.assertEqual(message, "the server does not allow this method on the requested resource")
            self.assertEqual(self.ask("HEAD", path)[0::2], (405, b""))

    def test_head(self) -> None:
        """The response to HEAD has the length of the document without its body."""
        _, _, body = self.ask("GET", "/apis")
        code, headers, nothing = self.ask("HEAD", "/apis")
        self.assertEqual((code, nothing), (200, b""))
        self.assertEqual(headers.getRawHeaders("content-length"), [str(len(body))])

    def test_unknown_group(self) -> None:
        """An unknown group is answered in plain text."""
        for path in ("/apis/nothing", "/no/such/path", "/ui"):
            code, headers, body = self.ask("GET", path, accept="application/yaml")
            self.assertEqual((code, body), (404, b"404 page not found\n"))
            self.assertEqual(headers.getRawHeaders("content-type"), ["text/plain; charset=utf-8"])
            self.assertEqual(headers.getRawHeaders("x-content-type-options"), ["nosniff"])

    def test_unknown_version(self) -> None:
        """An unknown version of a known group is answered with a Status."""
        for path in ("/api/v2", "/api/v2/pods", "/apis/apps/v9", "/apis/autoscaling/v9/x"):
            code, reason, message = self.refused("GET", path)
            self.assertEqual((code, reason), (404, "NotFound"))
            self.assertEqual(message, "the server could not find the requested resource")

    def test_status_as_yaml(self) -> None:
        """A Status has the media type that the client accepts."""
        _, headers, body = self.ask("POST", "/api", accept="application/yaml")
        self.assertEqual(headers.getRawHeaders("content-type"), ["application/yaml"])
        self.assertEqual(yaml.safe_load(body)["reason"], "MethodNotAllowed")

    def test_not_acceptable(self) -> None:
        """
        A client that accepts no available media type gets a 406 from the router, or from the handler in front of it.
        """
        self.assertTrue(self.refused("GET", "/api/v1", accept="text/html")[2].startswith("406: Not Acceptable"))
        for path in ("/apis", "/apis/apps"):
            self.assertTrue(self.refused("GET", path, accept="text/html")[2].startswith("only the following"))
        self.assertEqual(self.ask("GET", "/", accept="text/html")[0], 200)

    def test_index(self) -> None:
        """The index lists the paths of groups and the registered paths, sorted and without duplicates."""
        paths = self.get("/")["paths"]
        self.assertEqual(paths, sorted(set(paths)))
        self.assertTrue({"/api", "/api/v1", "/apis", "/apis/", "/apis/apps", "/apis/autoscaling/v1"} <= set(paths))


class AggregatedDiscoveryTests(DiscoveryCase):
    """Tests for aggregated discovery."""

    def test_groups(self) -> None:
        """All groups, versions and resources are in one document, with caching headers."""
        code, headers, body = self.ask("GET", "/apis", accept=f"{AGGREGATED % 'v2'},application/json")
        document = json.loads(body)
        self.assertEqual(code, 200)
        self.assertEqual(document["apiVersion"], "apidiscovery.k8s.io/v2")
        self.assertEqual([group["metadata"]["name"] for group in document["items"]], ["apps", "autoscaling"])
        self.assertEqual(headers.getRawHeaders("content-type"), [AGGREGATED % "v2"])
        self.assertEqual(headers.getRawHeaders("vary"), ["Accept"])
        self.assertEqual(headers.getRawHeaders("cache-control"), ["public"])

    def test_changes(self) -> None:
        """Added and removed resources change the next document; unchanged entries stay the same."""
        accept = AGGREGATED % "v2"
        before = self.get("/apis", accept=accept)["items"]
        self.groups.add(custom("lamps.example.com", "v1"))
        after = self.get("/apis", accept=accept)["items"]
        self.assertEqual((after[:-1], after[-1]["metadata"]["name"]), (before, "lamps.example.com"))
        self.groups.remove_group_version(GroupVersion("lamps.example.com", "v1"))
        self.groups.add(evolve(SCALE, subresource="status"))
        (apps, *_) = self.get("/apis", accept=accept)["items"]
        subresources = apps["versions"][0]["resources"][0]["subresources"]
        self.assertEqual([one["subresource"] for one in subresources], ["scale", "status"])

    def test_slash(self) -> None:
        """C{/apis/} with a trailing slash is the unaggregated document, regardless of C{Accept}."""
        accept = f"{AGGREGATED % 'v2'},application/json"
        self.assertEqual(self.get("/apis/", accept=accept)["kind"], "APIGroupList")
        self.assertEqual(self.refused("GET", "/apis/", accept=AGGREGATED % "v2")[0], 406)

    def test_core(self) -> None:
        """C{/api} contains the core group, which has no name."""
        document = self.get("/api", accept=AGGREGATED % "v2")
        self.assertEqual(
            [(item["metadata"], item["versions"][0]["version"]) for item in document["items"]], [({}, "v1")]
        )

    def test_not_modified(self) -> None:
        """A client with a current ETag gets 304 until the document changes."""
        etag = self.ask("GET", "/apis", accept=AGGREGATED % "v2")[1].getRawHeaders("etag")[0]
        code, headers, body = self.ask("GET", "/apis", accept=AGGREGATED % "v2", if_none_match=etag)
        self.assertEqual((code, body, headers.getRawHeaders("etag")), (304, b"", [etag]))
        self.groups.add(custom("lamps.example.com", "v1"))
        self.assertEqual(self.ask("GET", "/apis", accept=AGGREGATED % "v2", if_none_match=etag)[0], 200)

    def test_beta(self) -> None:
        """
        The beta version is served in releases that have it; in other releases its clients get the unaggregated
        document.
        """
        accept = f"{AGGREGATED % 'v2beta1'},application/json"
        self.assertEqual(self.get("/apis", accept=accept)["kind"], "APIGroupList")
        self.mux = server(self.groups, beta=True)
        self.assertEqual(self.get("/apis", accept=accept)["apiVersion"], "apidiscovery.k8s.io/v2beta1")

    def test_resource(self) -> None:
        """A resource contains its subresources; the group of a kind is listed if it differs."""
        document = aggregated_discovery(self.groups, core=False, version="v2")
        (deployments,) = document["items"][0]["versions"][0]["resources"]
        self.assertEqual(
            deployments,
            {
                "resource": "deployments",
                "responseKind": {"group": "", "version": "", "kind": "Deployment"},
                "scope": "Namespaced",
                "singularResource": "deployment",
                "verbs": list(ALL_VERBS),
                "shortNames": ["deploy"],
                "categories": ["all"],
                "subresources": [
                    {
                        "subresource": "scale",
                        "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
                        "verbs": ["get", "patch", "update"],
                    }
                ],
            },
        )

    def test_custom(self) -> None:
        """The kind of a custom resource has its group and version, also in its subresources."""
        lamp = evolve(custom("lamps.example.com", "v1"), custom=object())
        self.groups.set_group_version(
            GroupVersion("lamps.example.com", "v1"), [lamp, evolve(lamp, subresource="status")], Priority(1000, 100)
        )
        document = aggregated_discovery(self.groups, core=False, version="v2")
        (entry,) = next(one for one in document["items"] if one["metadata"]["name"] == "lamps.example.com")["versions"]
        kind = {"group": "lamps.example.com", "version": "v1", "kind": "Lamp"}
        self.assertEqual(entry["resources"][0]["responseKind"], kind)
        self.assertEqual(entry["resources"][0]["subresources"][0]["responseKind"], kind)

    def test_subresource_alone(self) -> None:
        """A subresource is listed even if its resource is not served."""
        groups = ServedResources()
        groups.add(SCALE)
        (entry,) = aggregated_discovery(groups, core=False, version="v2")["items"][0]["versions"][0]["resources"]
        self.assertEqual((entry["resource"], entry["scope"]), ("deployments", "Namespaced"))

    def test_nothing_served(self) -> None:
        """A version without resources has no document, and a group without versions has no entry."""
        self.assertIsNone(api_resource_list(self.groups, GroupVersion("none", "v1")))
        self.assertEqual(aggregated_discovery(ServedResources(), core=True, version="v2")["items"], [])
