"""Tests for L{kubetwist.resources.discovery.endpoints} and the documents it serves."""

from __future__ import annotations

import json
from typing import Any

import yaml
from attrs import evolve

from treq.testing import StubTreq
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupVersion
from kubetwist.resources.discovery.documents import aggregated_discovery, api_resource_list
from kubetwist.resources.discovery.endpoints import (
    CoreVersions,
    Group,
    Groups,
    GroupVersionResources,
    Index,
    PathNotFound,
    index_paths,
)
from kubetwist.resources.mux import DelegatingMux
from kubetwist.resources.servedresources import Priority, ServedResources

from ..installedfake import ALL_VERBS, APPS, CORE, SCALE, NotFound, custom, installed

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=%s;as=APIGroupDiscoveryList"


def server(groups: ServedResources, beta: bool = False) -> DelegatingMux:
    """A layer that answers the paths of discovery."""
    mux = DelegatingMux("test", NotFound())
    index = Index(lambda: [*mux.listed_paths(), *index_paths(groups)])
    mux.handle("/", index)
    mux.handle("/index.html", index)
    mux.handle_prefix("/api", CoreVersions(groups, lambda: "192.0.2.1:6443", beta))
    mux.handle_prefix("/api/v1", GroupVersionResources(groups, CORE))
    mux.handle("/apis", Groups(groups, beta))
    mux.handle_prefix("/apis/apps/v1", GroupVersionResources(groups, APPS))
    mux.handle_prefix("/apis/apps", Group(groups, "apps"))
    mux.handle("/apis/autoscaling", Group(groups, "autoscaling"))
    mux.handle_prefix("/apis/autoscaling/v9", PathNotFound())
    return mux


class DiscoveryCase(SynchronousTestCase):
    """Asks a server over HTTP in memory."""

    def setUp(self) -> None:
        """Each test has a server of its own."""
        self.groups = installed()
        self.client = StubTreq(server(self.groups))

    def ask(self, method: str, path: str, **headers: str) -> tuple[int, Any, bytes]:
        """The code, the headers and the body of an answer."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        response = self.successResultOf(self.client.request(method, f"http://kube.invalid{path}", headers=sent))
        return response.code, response.headers, self.successResultOf(response.content())

    def get(self, path: str, **headers: str) -> Any:
        """The JSON of an answer that is as it should be."""
        code, _, body = self.ask("GET", path, **headers)
        self.assertEqual(code, 200, body)
        return json.loads(body)

    def refused(self, method: str, path: str, **headers: str) -> tuple[int, str, str]:
        """The code, reason and message of a Status."""
        code, _, body = self.ask(method, path, **headers)
        status = json.loads(body)
        self.assertEqual((status["kind"], status["code"]), ("Status", code))
        return code, status["reason"], status["message"]


class PlainDiscoveryTests(DiscoveryCase):
    """Tests for the documents, one for each path."""

    def test_core_versions(self) -> None:
        """C{/api} tells the versions of the core group and the server's address, with a slash behind it or not."""
        expected = {
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "192.0.2.1:6443"}],
        }
        self.assertEqual(self.get("/api"), expected)
        self.assertEqual(self.get("/api/"), expected)

    def test_groups(self) -> None:
        """C{/apis} lists all groups but the core group, each with its versions, the preferred one first."""
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
        """A version's document lists its resources; a kind of elsewhere comes with its group and version."""
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
        """The core group's document is of a time before it had an apiVersion."""
        self.assertNotIn("apiVersion", self.get("/api/v1"))

    def test_changes(self) -> None:
        """What comes while the server runs is in the next answer, and what goes is not."""
        self.groups.add(custom("lamps.example.com", "v1"))
        self.assertEqual(self.get("/apis")["groups"][-1]["name"], "lamps.example.com")
        self.groups.remove_group_version(APPS)
        self.assertEqual(self.ask("GET", "/apis/apps")[0], 404)
        self.assertEqual(self.refused("GET", "/apis/apps/v1")[0], 404)

    def test_yaml(self) -> None:
        """Documents can be had as YAML."""
        code, headers, body = self.ask("GET", "/api/v1", accept="application/yaml")
        self.assertEqual((code, headers.getRawHeaders("content-type")), (200, ["application/yaml"]))
        self.assertEqual(yaml.safe_load(body), self.get("/api/v1"))

    def test_pretty(self) -> None:
        """Whoever asks for it, or looks like a human, gets indented JSON."""
        for path, agent in (("/apis?pretty=true", "x"), ("/apis", "curl/8")):
            body = self.ask("GET", path, user_agent=agent)[2]
            self.assertTrue(body.startswith(b'{\n  "kind": "APIGroupList"'))
        self.assertTrue(self.ask("GET", "/apis", user_agent="x")[2].startswith(b'{"kind":"APIGroupList",'))

    def test_large_is_compressed(self) -> None:
        """Long documents are compressed for those who take that."""
        for number in range(2000):
            self.groups.add(custom(f"g{number}.example.com", "v1"))
        code, headers, _ = self.ask("GET", "/apis", accept_encoding="gzip")
        self.assertEqual((code, headers.getRawHeaders("vary")), (200, ["Accept-Encoding"]))
        self.assertEqual(len(self.get("/apis")["groups"]), 2002)


class MethodTests(DiscoveryCase):
    """Tests for methods, and for paths where nothing is."""

    def test_any_method(self) -> None:
        """C{/}, C{/apis} and groups answer whatever the method."""
        for path in ("/", "/index.html", "/apis", "/apis/", "/apis/apps"):
            for method in ("POST", "OPTIONS", "DELETE"):
                self.assertEqual(self.ask(method, path)[0], 200)

    def test_get_only(self) -> None:
        """What is behind the router knows GET alone, and not even HEAD."""
        for path in ("/api", "/api/v1", "/apis/apps/v1/"):
            code, reason, message = self.refused("POST", path)
            self.assertEqual((code, reason), (405, "MethodNotAllowed"))
            self.assertEqual(message, "the server does not allow this method on the requested resource")
            self.assertEqual(self.ask("HEAD", path)[0::2], (405, b""))

    def test_head(self) -> None:
        """HEAD tells how long the document is, without it."""
        _, _, body = self.ask("GET", "/apis")
        code, headers, nothing = self.ask("HEAD", "/apis")
        self.assertEqual((code, nothing), (200, b""))
        self.assertEqual(headers.getRawHeaders("content-length"), [str(len(body))])

    def test_unknown_group(self) -> None:
        """Nobody knows the group: plain text."""
        for path in ("/apis/nothing", "/no/such/path", "/ui"):
            code, headers, body = self.ask("GET", path, accept="application/yaml")
            self.assertEqual((code, body), (404, b"404 page not found\n"))
            self.assertEqual(headers.getRawHeaders("content-type"), ["text/plain; charset=utf-8"])
            self.assertEqual(headers.getRawHeaders("x-content-type-options"), ["nosniff"])

    def test_unknown_version(self) -> None:
        """The group is known, but not what is asked for: a Status."""
        for path in ("/api/v2", "/api/v2/pods", "/apis/apps/v9", "/apis/autoscaling/v9/x"):
            code, reason, message = self.refused("GET", path)
            self.assertEqual((code, reason), (404, "NotFound"))
            self.assertEqual(message, "the server could not find the requested resource")

    def test_status_as_yaml(self) -> None:
        """A Status comes as the client accepts it."""
        _, headers, body = self.ask("POST", "/api", accept="application/yaml")
        self.assertEqual(headers.getRawHeaders("content-type"), ["application/yaml"])
        self.assertEqual(yaml.safe_load(body)["reason"], "MethodNotAllowed")

    def test_not_acceptable(self) -> None:
        """Who takes nothing that there is, is told of it by the router or by what is in front of it."""
        self.assertTrue(self.refused("GET", "/api/v1", accept="text/html")[2].startswith("406: Not Acceptable"))
        for path in ("/apis", "/apis/apps"):
            self.assertTrue(self.refused("GET", path, accept="text/html")[2].startswith("only the following"))
        self.assertEqual(self.ask("GET", "/", accept="text/html")[0], 200)

    def test_index(self) -> None:
        """The index lists the paths of groups and those that are claimed, sorted, each once."""
        paths = self.get("/")["paths"]
        self.assertEqual(paths, sorted(set(paths)))
        self.assertTrue({"/api", "/api/v1", "/apis", "/apis/", "/apis/apps", "/apis/autoscaling/v1"} <= set(paths))


class AggregatedDiscoveryTests(DiscoveryCase):
    """Tests for aggregated discovery."""

    def test_groups(self) -> None:
        """All groups, their versions and their resources come in one document, for the client to keep."""
        code, headers, body = self.ask("GET", "/apis", accept=f"{AGGREGATED % 'v2'},application/json")
        document = json.loads(body)
        self.assertEqual(code, 200)
        self.assertEqual(document["apiVersion"], "apidiscovery.k8s.io/v2")
        self.assertEqual([group["metadata"]["name"] for group in document["items"]], ["apps", "autoscaling"])
        self.assertEqual(headers.getRawHeaders("content-type"), [AGGREGATED % "v2"])
        self.assertEqual(headers.getRawHeaders("vary"), ["Accept"])
        self.assertEqual(headers.getRawHeaders("cache-control"), ["public"])

    def test_changes(self) -> None:
        """What comes and goes is in the next document, and what has not changed is told as before."""
        accept = AGGREGATED % "v2"
        before = self.get("/apis", accept=accept)["items"]
        self.groups.add(custom("lamps.example.com", "v1"))
        after = self.get("/apis", accept=accept)["items"]
        self.assertEqual((after[:-1], after[-1]["metadata"]["name"]), (before, "lamps.example.com"))
        self.groups.remove_group_version(GroupVersion("lamps.example.com", "v1"))
        self.groups.add(evolve(SCALE, subresource="status"))
        (apps, *_) = self.get("/apis", accept=accept)["items"]
        told = apps["versions"][0]["resources"][0]["subresources"]
        self.assertEqual([one["subresource"] for one in told], ["scale", "status"])

    def test_slash(self) -> None:
        """With a slash behind it, C{/apis} is the plain document, whatever is asked for besides."""
        accept = f"{AGGREGATED % 'v2'},application/json"
        self.assertEqual(self.get("/apis/", accept=accept)["kind"], "APIGroupList")
        self.assertEqual(self.refused("GET", "/apis/", accept=AGGREGATED % "v2")[0], 406)

    def test_core(self) -> None:
        """C{/api} has the core group's, which has no name."""
        document = self.get("/api", accept=AGGREGATED % "v2")
        self.assertEqual(
            [(item["metadata"], item["versions"][0]["version"]) for item in document["items"]], [({}, "v1")]
        )

    def test_not_modified(self) -> None:
        """A client that has the document gets it again only after a change."""
        etag = self.ask("GET", "/apis", accept=AGGREGATED % "v2")[1].getRawHeaders("etag")[0]
        code, headers, body = self.ask("GET", "/apis", accept=AGGREGATED % "v2", if_none_match=etag)
        self.assertEqual((code, body, headers.getRawHeaders("etag")), (304, b"", [etag]))
        self.groups.add(custom("lamps.example.com", "v1"))
        self.assertEqual(self.ask("GET", "/apis", accept=AGGREGATED % "v2", if_none_match=etag)[0], 200)

    def test_beta(self) -> None:
        """The beta version is served where the release has it; elsewhere its clients get the plain document."""
        accept = f"{AGGREGATED % 'v2beta1'},application/json"
        self.assertEqual(self.get("/apis", accept=accept)["kind"], "APIGroupList")
        self.client = StubTreq(server(self.groups, beta=True))
        self.assertEqual(self.get("/apis", accept=accept)["apiVersion"], "apidiscovery.k8s.io/v2beta1")

    def test_resource(self) -> None:
        """A resource has its subresources with it; a kind's group is told where it is another's."""
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
        """A subresource whose resource is not served is there all the same."""
        groups = ServedResources()
        groups.add(SCALE)
        (entry,) = aggregated_discovery(groups, core=False, version="v2")["items"][0]["versions"][0]["resources"]
        self.assertEqual((entry["resource"], entry["scope"]), ("deployments", "Namespaced"))

    def test_nothing_served(self) -> None:
        """There is no document of a version that is not served, and no entry for a group without versions."""
        self.assertIsNone(api_resource_list(self.groups, GroupVersion("none", "v1")))
        self.assertEqual(aggregated_discovery(ServedResources(), core=True, version="v2")["items"], [])
