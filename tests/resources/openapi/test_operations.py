"""Tests for L{kubetwist.resources.openapi.operations}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupVersion, GroupVersionKind
from kubetwist.resources.openapi.custom import custom_paths
from kubetwist.resources.openapi.operations import Definitions, Path, Release, resource_paths
from kubetwist.resources.servedresources import ServedResources
from kubetwist.schema.openapi import V3_REFERENCE
from tests.resources.fakeservedresources import APPS, CORE, custom, served_resources
from tests.resources.openapi.fakedefinitions import META, FakeDefinitions

WIDGET = GroupVersionKind("example.com", "v1", "Widget")


def paths_of(
    groups: ServedResources, group_version: GroupVersion, minor: int = 36, cbor: bool = False
) -> dict[str, dict[str, Any]]:
    """Return the operations of a version, by path and method."""
    schemas = FakeDefinitions().openapi_schemas(V3_REFERENCE)
    names = Definitions((name, schema.get("x-kubernetes-group-version-kind", ())) for name, schema in schemas.items())
    paths = resource_paths(group_version, groups.resources(group_version), names, Release(minor, cbor))
    return {path.path: {one.method: one for one in path.operations} for path in paths}


class OperationsTests(SynchronousTestCase):
    """L{resource_paths}."""

    def test_paths(self) -> None:
        """A namespaced resource has the paths of its verbs within a namespace, and read paths across all namespaces."""
        found = {path: set(methods) for path, methods in paths_of(served_resources(), APPS).items()}
        self.assertEqual(
            found,
            {
                "/apis/apps/v1/": {"get"},
                "/apis/apps/v1/deployments": {"get"},
                "/apis/apps/v1/namespaces/{namespace}/deployments": {"get", "post", "delete"},
                "/apis/apps/v1/namespaces/{namespace}/deployments/{name}": {"get", "put", "patch", "delete"},
                "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale": {"get", "put", "patch"},
                "/apis/apps/v1/watch/deployments": {"get"},
                "/apis/apps/v1/watch/namespaces/{namespace}/deployments": {"get"},
                "/apis/apps/v1/watch/namespaces/{namespace}/deployments/{name}": {"get"},
            },
        )

    def test_cluster_scope(self) -> None:
        """A cluster-scoped resource has no second path, and only operations for its verbs."""
        found = {
            path: set(methods) for path, methods in paths_of(served_resources(), CORE).items() if "pods" not in path
        }
        self.assertEqual(
            found,
            {
                "/api/v1/": {"get"},
                "/api/v1/namespaces": {"get", "post"},
                "/api/v1/namespaces/{name}": {"get", "put", "patch", "delete"},
                "/api/v1/watch/namespaces": {"get"},
                "/api/v1/watch/namespaces/{name}": {"get"},
            },
        )

    def test_names(self) -> None:
        """Operations are named by verb, group, version, scope and kind, like the methods of generated clients."""
        apps, core = paths_of(served_resources(), APPS), paths_of(served_resources(), CORE)
        base = "/apis/apps/v1/namespaces/{namespace}/deployments"
        pod = "/api/v1/namespaces/{namespace}/pods/{name}"
        for operation, name in (
            (apps["/apis/apps/v1/"]["get"], "getAppsV1APIResources"),
            (apps["/apis/apps/v1/deployments"]["get"], "listAppsV1DeploymentForAllNamespaces"),
            (apps[base]["post"], "createAppsV1NamespacedDeployment"),
            (apps[base]["delete"], "deleteAppsV1CollectionNamespacedDeployment"),
            (apps[f"{base}/{{name}}"]["get"], "readAppsV1NamespacedDeployment"),
            (apps[f"{base}/{{name}}"]["put"], "replaceAppsV1NamespacedDeployment"),
            (apps[f"{base}/{{name}}/scale"]["patch"], "patchAppsV1NamespacedDeploymentScale"),
            (apps["/apis/apps/v1/watch/deployments"]["get"], "watchAppsV1DeploymentListForAllNamespaces"),
            (core[f"{pod}/exec"]["post"], "connectCoreV1PostNamespacedPodExec"),
            (core[f"{pod}/proxy/{{path}}"]["head"], "connectCoreV1HeadNamespacedPodProxyWithPath"),
            (core["/api/v1/namespaces/{name}"]["delete"], "deleteCoreV1Namespace"),
        ):
            self.assertEqual(operation.name, name)

    def test_tag(self) -> None:
        """The tag is the group without its suffix, in one word, and the version."""
        groups = ServedResources()
        groups.add(custom("rbac.authorization.k8s.io", "v1"))
        (root, *_) = paths_of(groups, GroupVersion("rbac.authorization.k8s.io", "v1")).values()
        self.assertEqual(
            (root["get"].tag, root["get"].name), ("rbacAuthorization_v1", "getRbacAuthorizationV1APIResources")
        )

    def test_types(self) -> None:
        """DELETE returns a Status unless the resource returns the object; a scale is a Scale of another group."""
        apps, core = paths_of(served_resources(), APPS), paths_of(served_resources(), CORE)
        deployment = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
        self.assertEqual(apps[deployment]["delete"].answer, f"{META}Status")
        self.assertEqual(core["/api/v1/namespaces/{namespace}/pods/{name}"]["delete"].answer, "io.k8s.api.core.v1.Pod")
        self.assertEqual(apps[f"{deployment}/scale"]["put"].body, "io.k8s.api.autoscaling.v1.Scale")
        log = core["/api/v1/namespaces/{namespace}/pods/{name}/log"]["get"]
        self.assertEqual((log.produces[0], log.action, log.name), ("text/plain", "get", "readCoreV1NamespacedPodLog"))
        self.assertIn("tailLines", [one.name for one in log.parameters])
        self.assertEqual(core["/api/v1/namespaces/{name}"]["delete"].answer, f"{META}Status")

    def test_reading_custom_resources(self) -> None:
        """The operations that read custom resources have the parameter resourceVersion."""
        plain = [
            Path(path, list(methods.values()))
            for path, methods in paths_of(served_resources(), APPS).items()
            if path == "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
        ]
        for paths, has in ((plain, False), (custom_paths(plain, WIDGET), True)):
            (read,) = (one for path in paths for one in path.operations if one.method == "get")
            self.assertEqual("resourceVersion" in [one.name for one in read.parameters], has)

    def test_cbor(self) -> None:
        """A server with CBOR documents it for built-in resources, and patches in CBOR for custom resources, too."""
        item, cbor = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}", "application/cbor"
        deployments = paths_of(served_resources(), APPS, cbor=True)
        self.assertEqual(deployments[item]["get"].produces[-1], cbor)
        self.assertEqual(deployments["/apis/apps/v1/deployments"]["get"].produces[-1], f"{cbor}-seq")
        self.assertEqual(deployments[item]["patch"].consumes[-1], "application/apply-patch+cbor")
        self.assertIn(cbor, deployments["/apis/apps/v1/"]["get"].consumes)
        (path,) = custom_paths([Path(item, list(deployments[item].values()))], WIDGET)
        patch = next(one for one in path.operations if one.method == "patch")
        self.assertEqual(patch.consumes[-1], "application/apply-patch+cbor")
        self.assertNotIn("application/strategic-merge-patch+json", patch.consumes)
        self.assertEqual(patch.produces, ("application/json", "application/yaml"))

    def test_field_validation(self) -> None:
        """C{fieldValidation} is a parameter of writes; kubectl reads it to detect server-side validation."""
        deployment = paths_of(served_resources(), APPS)["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]
        for method, has in (("put", True), ("patch", True), ("get", False), ("delete", False)):
            names = {one.name for one in deployment[method].parameters}
            self.assertEqual("fieldValidation" in names, has)

    def test_releases(self) -> None:
        """Parameters of later releases are not in the documents of older releases."""
        path = "/apis/apps/v1/deployments"
        for minor, has in ((36, True), (35, False)):
            names = {one.name for one in paths_of(served_resources(), APPS, minor)[path]["get"].parameters}
            self.assertEqual("shardSelector" in names, has)

    def test_terms(self) -> None:
        """The descriptions of parameters use the terms that kube-apiserver's tests require."""
        read = paths_of(served_resources(), APPS)["/apis/apps/v1/deployments"]["get"]
        texts = {one.name: one.description for one in read.parameters}
        for name in ("labelSelector", "fieldSelector", "shardSelector"):
            self.assertIn("list of returned objects", texts[name])
        self.assertTrue(texts["watch"].startswith("Watch for changes to the described resources "))
