"""Definitions of a few kinds, from which tests build OpenAPI documents."""

from __future__ import annotations

from collections.abc import Mapping

from kubetwist.api.resource import JSONObject

META = "io.k8s.apimachinery.pkg.apis.meta.v1."


class FakeDefinitions:
    """Some types, as L{kubetwist.schema.definitions} returns them."""

    broken = False

    def openapi_schemas(self, ref_prefix: str) -> Mapping[str, JSONObject]:
        """@see: L{kubetwist.resources.openapi.schemas.IDefinitions}."""
        if self.broken:
            raise RuntimeError("no types today")

        def ref(name: str) -> JSONObject:
            return {"$ref": ref_prefix + name}

        def kinds(kind: str, *groups: str) -> list[dict[str, str]]:
            return [{"group": group, "version": "v1", "kind": kind} for group in groups]

        core, apps = "io.k8s.api.core.v1.", "io.k8s.api.apps.v1."
        return {
            f"{core}Pod": {
                "type": "object",
                "properties": {
                    "metadata": ref(f"{META}ObjectMeta") | {"description": "About it."},
                    "spec": ref(f"{core}PodSpec"),
                },
                "x-kubernetes-group-version-kind": kinds("Pod", ""),
            },
            f"{core}PodList": {
                "type": "object",
                "required": ["items"],
                "properties": {"items": {"type": "array", "items": ref(f"{core}Pod")}},
                "x-kubernetes-group-version-kind": kinds("PodList", ""),
            },
            f"{core}PodSpec": {
                "type": "object",
                "required": ["name", "count", "target", "selector", "port"],
                "properties": {
                    "name": {"type": "string"},
                    "count": {"type": "integer"},
                    "kept": {"type": "string", "default": "as is"},
                    "target": ref(f"{core}PodSpec"),
                    "optional": ref(f"{core}PodSpec"),
                    "selector": ref(f"{META}LabelSelector"),
                    "port": ref("io.k8s.apimachinery.pkg.util.intstr.IntOrString") | {"description": "Where."},
                },
            },
            f"{apps}Deployment": {"type": "object", "x-kubernetes-group-version-kind": kinds("Deployment", "apps")},
            "io.k8s.api.autoscaling.v1.Scale": {
                "type": "object",
                "x-kubernetes-group-version-kind": kinds("Scale", "autoscaling"),
            },
            "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"description": "Both.", "type": "string"},
            **{
                META + name: {"type": "object"}
                for name in ("ObjectMeta", "LabelSelector", "Status", "Patch", "APIVersions", "APIGroupList")
            },
            **{META + name: {"type": "object"} for name in ("APIGroup", "APIResourceList", "Unused")},
            **{
                META + name: {
                    "type": "object",
                    "x-kubernetes-group-version-kind": kinds(name, "", "apps", "batch", "policy"),
                }
                for name in ("DeleteOptions", "WatchEvent")
            },
            "io.k8s.apimachinery.pkg.version.Info": {"type": "object"},
        }
