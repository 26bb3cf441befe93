"""The requests of L{attacks}: for each attack its set-up, and the requests that the attacker sends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
NAMESPACE = "/api/v1/namespaces/default"
GROUP = "attacks.example.com"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Call(NamedTuple):
    """One request."""

    method: str
    path: str
    body: bytes | None = None
    media: str = JSON
    accept: str = ""


class Attack(NamedTuple):
    """
    One attack.

    @ivar setup: Requests before the attack.
    @ivar calls: Requests that the attacker repeats.
    @ivar cleanup: Requests that remove objects which could affect the next attack.
    @ivar settle: Seconds between set-up and attack.
    """

    name: str
    calls: Callable[[], Iterable[Call]]
    setup: Callable[[], Iterable[Call]] = tuple
    cleanup: Callable[[], Iterable[Call]] = tuple
    settle: float = 0.0


def post(path: str, obj: Any) -> Call:
    """Return a POST of an object."""
    return Call("POST", path, json.dumps(obj).encode())


def core(kind: str, name: str, **parts: Any) -> dict[str, Any]:
    """Return an object of the core group."""
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **parts}


def definition(plural: str, schema: Any, **version: Any) -> dict[str, Any]:
    """Return a definition of custom resources with one version."""
    kind = plural.capitalize()
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": plural, "kind": kind},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
            ],
        },
    }


def custom(plural: str, name: str, **parts: Any) -> dict[str, Any]:
    """Return a custom resource."""
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": plural.capitalize(),
        "metadata": {"name": name},
        **parts,
    }


def custom_path(plural: str) -> str:
    """Return the path of custom resources."""
    return f"/apis/{GROUP}/v1/namespaces/default/{plural}"


def spec_schema(spec: Any) -> dict[str, Any]:
    """Return the schema of an object with this spec."""
    return {"type": "object", "properties": {"spec": spec}}


PRESERVED = spec_schema({"type": "object", "x-kubernetes-preserve-unknown-fields": True})


def nested(depth: int, width: int) -> Any:
    """Return a tree with C{width} branches a, b, c at each of C{depth} levels."""
    if not depth:
        return "x"
    return {name: nested(depth - 1, width) for name in "abcdefgh"[:width]}


def repeated(plural: str, count: int) -> Iterator[Call]:
    """Set up printer columns: a definition with ten of them, and some large objects."""
    columns = [{"name": f"c{n}", "type": "string", "jsonPath": f".spec..a..b..c..d{n}"} for n in range(10)]
    yield post(DEFINITIONS, definition(plural, PRESERVED, additionalPrinterColumns=columns))
    yield Call("GET", custom_path(plural))
    spec = nested(9, 3)
    for number in range(count):
        yield post(custom_path(plural), custom(plural, f"o{number}", spec=spec))


def selectable(plural: str, count: int) -> Iterator[Call]:
    """Set up selectable fields: eight of them, and many objects."""
    names = [f"f{n}" for n in range(8)]
    schema = spec_schema({"type": "object", "properties": {name: {"type": "string"} for name in names}})
    fields = [{"jsonPath": f".spec.{name}"} for name in names]
    yield post(DEFINITIONS, definition(plural, schema, selectableFields=fields))
    yield Call("GET", custom_path(plural))
    for number in range(count):
        spec = {name: f"{name}-{number}" for name in names}
        yield post(custom_path(plural), custom(plural, f"o{number}", spec=spec))


def pod(containers: Any, **spec: Any) -> dict[str, Any]:
    """Return a pod."""
    return core("Pod", "attacks", spec={"containers": containers, **spec})


def rules(rule: str) -> list[dict[str, str]]:
    """Return validation rules of a schema."""
    return [{"rule": rule}]


def listed(plural: str, items: Any, **more: Any) -> dict[str, Any]:
    """Return a definition whose spec.items is a list."""
    items = {"type": "array", "items": items, **more}
    return definition(plural, spec_schema({"type": "object", "properties": {"items": items}}))


LIST_MAP_ITEM = {
    "type": "object",
    "required": ["k"],
    "properties": {"k": {"type": "string"}, "v": {"type": "string"}},
}


def large_schema(number: int) -> dict[str, Any]:
    """Return a definition with 3,000 described properties."""
    text = "What this is for, as descriptions go. " * 3
    properties = {f"p{n}": {"type": "string", "description": f"{text}{number}"} for n in range(3000)}
    return definition(f"big{number}", spec_schema({"type": "object", "properties": properties}))


def applied(path: str, obj: Any) -> Call:
    """Return a server-side apply."""
    return Call("PATCH", f"{path}?fieldManager=attacks&force=true", json.dumps(obj).encode(), APPLY)


def policies() -> Any:
    """Return a network policy with 2,000 rules of 100 ports each."""
    ports = [{"protocol": "TCP", "port": n + 1} for n in range(100)]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "attacks"},
        "spec": {"podSelector": {}, "ingress": [{"ports": ports[:30]} for _ in range(2000)]},
    }


def peers() -> Any:
    """Return a network policy with 200 rules of 100 blocks each."""
    blocks = [{"ipBlock": {"cidr": f"10.0.{n}.0/24"}} for n in range(100)]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "attacks"},
        "spec": {"podSelector": {}, "ingress": [{"from": blocks[:40]} for _ in range(1500)]},
    }


def deployment(env: int) -> dict[str, Any]:
    """Return a Deployment whose container has many environment variables."""
    variables = [{"name": f"V{n}", "value": str(n)} for n in range(env)]
    container = {"name": "a", "image": "a", "args": ["a"], "env": variables}
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "attacks"},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
    }


def stored(path: str, obj: Any) -> Callable[[], Iterable[Call]]:
    """Return a set-up that creates one object."""
    return lambda: [post(path, obj)]


def deleted(path: str) -> Callable[[], Iterable[Call]]:
    """Return a clean-up that deletes one object or a collection."""
    return lambda: [Call("DELETE", path)]


CONFIGMAPS = f"{NAMESPACE}/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
INGRESSES = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
#: A pod with many names to compare, and a patch that touches all of them in the other order.
VARIABLES = [{"name": f"V{n}", "value": f"new{n}"} for n in range(5000)]


def many_keys(count: int, value: str = "v") -> dict[str, str]:
    """Return the data of a ConfigMap."""
    return {f"key-{n}": f"{value}{n}" for n in range(count)}


def dry(path: str) -> str:
    """Return the path of a dry run, which can be repeated."""
    return f"{path}?dryRun=All"


def small_objects() -> Iterator[Call]:
    """Create 5,000 ConfigMaps in a separate namespace."""
    yield post("/api/v1/namespaces", core("Namespace", "attacks-tables"))
    for number in range(5000):
        yield post(
            "/api/v1/namespaces/attacks-tables/configmaps", core("ConfigMap", f"c{number}", data={"a": "x" * 500})
        )


ATTACKS: list[Attack] = [
    Attack(
        "printer-columns",
        lambda: [Call("GET", custom_path("columned"), accept=TABLE)],
        lambda: repeated("columned", 8),
        deleted(f"{DEFINITIONS}/columned.{GROUP}"),
        1,
    ),
    Attack(
        "printer-columns-update",
        lambda: [
            Call(
                "PATCH",
                f"{custom_path('rewritten')}/o0",
                json.dumps({"metadata": {"annotations": {"n": str(n)}}}).encode(),
                MERGE,
                TABLE,
            )
            for n in range(5)
        ],
        lambda: repeated("rewritten", 1),
        deleted(f"{DEFINITIONS}/rewritten.{GROUP}"),
        1,
    ),
    Attack(
        "selectable-fields",
        lambda: [
            Call("GET", f"{custom_path('selectable')}?fieldSelector={'%2C'.join(f'spec.f{n}!=x' for n in range(8))}")
        ],
        lambda: selectable("selectable", 2000),
        deleted(f"{DEFINITIONS}/selectable.{GROUP}"),
    ),
    Attack(
        "field-selector",
        lambda: [
            Call(
                "GET",
                "/api/v1/namespaces/attacks-tables/configmaps?limit=1&fieldSelector="
                + "%2C".join(f"metadata.name!=d{n}" for n in range(1000)),
            )
        ],
        small_objects,
    ),
    Attack(
        "label-selector",
        lambda: [
            Call(
                "GET",
                "/api/v1/namespaces/attacks-tables/configmaps?limit=1&labelSelector=a+in+("
                + ",".join(f"v{n}" for n in range(8000))
                + ")",
            )
        ],
        small_objects,
    ),
    Attack(
        "tables", lambda: [Call("GET", "/api/v1/namespaces/attacks-tables/configmaps", accept=TABLE)], small_objects
    ),
    Attack(
        "tables-objects",
        lambda: [Call("GET", "/api/v1/namespaces/attacks-tables/configmaps?includeObject=Object", accept=TABLE)],
        small_objects,
    ),
    Attack(
        "cel-lists",
        lambda: [
            post(dry(custom_path("ruled")), custom("ruled", "a", spec={"items": [n % 1000 for n in range(300_000)]}))
        ],
        lambda: [
            post(
                DEFINITIONS,
                listed(
                    "ruled",
                    {"type": "integer", "x-kubernetes-validations": rules("self < 100000 && self * 2 + 1 > self")},
                    **{"x-kubernetes-validations": rules("self.all(x, x < 100000)"), "maxItems": 400_000},
                ),
            )
        ],
        deleted(f"{DEFINITIONS}/ruled.{GROUP}"),
        1,
    ),
    Attack(
        "cel-matches",
        lambda: [
            post(
                dry(custom_path("matched")),
                custom("matched", "a", spec={"text": "ab" * 50_000}),
            )
        ],
        lambda: [
            post(
                DEFINITIONS,
                definition(
                    "matched",
                    spec_schema(
                        {
                            "type": "object",
                            "properties": {"text": {"type": "string", "maxLength": 100_000}},
                            "x-kubernetes-validations": [
                                {"rule": f"({' + '.join(['self.text'] * 8)}).matches('(a|b)*c?{n}')"} for n in range(20)
                            ],
                        }
                    ),
                ),
            )
        ],
        deleted(f"{DEFINITIONS}/matched.{GROUP}"),
        1,
    ),
    Attack(
        "openapi",
        lambda: [
            call
            for n in range(6)
            for call in (
                post(DEFINITIONS, large_schema(n)),
                Call("GET", "/openapi/v2"),
                Call("GET", f"/openapi/v3/apis/{GROUP}/v1"),
                Call("DELETE", f"{DEFINITIONS}/big{n}.{GROUP}"),
            )
        ],
    ),
    Attack(
        "apply-list-map",
        lambda: [
            applied(
                f"{custom_path('mapped')}/a",
                custom("mapped", "a", spec={"items": [{"k": f"k{n}", "v": f"v{n}-{turn}"} for n in range(10_000)]}),
            )
            for turn in (0, 1)
        ],
        lambda: [
            post(
                DEFINITIONS,
                listed(
                    "mapped",
                    LIST_MAP_ITEM,
                    **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
                ),
            )
        ],
        deleted(f"{DEFINITIONS}/mapped.{GROUP}"),
        1,
    ),
    Attack(
        "apply-set",
        lambda: [
            applied(
                f"{custom_path('unique')}/a",
                custom("unique", "a", spec={"items": [f"k{n + turn}" for n in range(10_000)]}),
            )
            for turn in (0, 100)
        ],
        lambda: [post(DEFINITIONS, listed("unique", {"type": "string"}, **{"x-kubernetes-list-type": "set"}))],
        deleted(f"{DEFINITIONS}/unique.{GROUP}"),
        1,
    ),
    Attack(
        "apply-pod-env",
        lambda: [applied(f"{DEPLOYMENTS}/attacks", deployment(10_000))],
        stored(DEPLOYMENTS, deployment(10_000)),
        deleted(f"{DEPLOYMENTS}/attacks"),
    ),
    Attack(
        "strategic-merge",
        lambda: [
            Call(
                "PATCH",
                f"{DEPLOYMENTS}/attacks",
                json.dumps(
                    {"spec": {"template": {"spec": {"containers": [{"name": "a", "env": VARIABLES[:: 1 - 2 * turn]}]}}}}
                ).encode(),
                STRATEGIC,
            )
            for turn in (0, 1)
        ],
        stored(DEPLOYMENTS, deployment(5_000)),
        deleted(f"{DEPLOYMENTS}/attacks"),
    ),
    Attack(
        "strategic-merge-order",
        lambda: [
            Call(
                "PATCH",
                f"{NAMESPACE}/serviceaccounts/attacks",
                json.dumps(
                    {
                        "secrets": [{"name": f"s{n}"} for n in range(4999, -1, -1)],
                        "$setElementOrder/secrets": [{"name": f"s{n}"} for n in range(4999, -1, -1)],
                    }
                ).encode(),
                STRATEGIC,
            )
        ],
        stored(
            f"{NAMESPACE}/serviceaccounts",
            core("ServiceAccount", "attacks", secrets=[{"name": f"s{n}"} for n in range(5000)]),
        ),
        deleted(f"{NAMESPACE}/serviceaccounts/attacks"),
    ),
    Attack(
        "pod-containers",
        lambda: [post(dry(f"{NAMESPACE}/pods"), pod([{"name": f"c{n}", "image": "a"} for n in range(20_000)]))],
        lambda: [post(f"{NAMESPACE}/serviceaccounts", core("ServiceAccount", "default"))],
    ),
    Attack(
        "pod-volumes",
        lambda: [
            post(
                dry(f"{NAMESPACE}/pods"),
                pod(
                    [
                        {
                            "name": "a",
                            "image": "a",
                            "volumeMounts": [{"name": f"v{n}", "mountPath": f"/m{n}"} for n in range(15_000)],
                        }
                    ],
                    volumes=[{"name": f"v{n}", "emptyDir": {}} for n in range(15_000)],
                ),
            )
        ],
    ),
    Attack(
        "finalizers",
        lambda: [
            post(
                dry(CONFIGMAPS),
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "f", "finalizers": [f"example.com/{n}" for n in range(60_000)]},
                },
            )
        ],
    ),
    Attack("network-policy-ports", lambda: [post(dry(POLICIES), policies())]),
    Attack("network-policy-peers", lambda: [post(dry(POLICIES), peers())]),
    Attack("configmap-3mb", lambda: [post(dry(CONFIGMAPS), core("ConfigMap", "large", data=many_keys(90_000)))]),
    Attack(
        "configmap-put",
        lambda: [
            Call("PUT", f"{CONFIGMAPS}/many", json.dumps(core("ConfigMap", "many", data=many_keys(40_000, v))).encode())
            for v in "xy"
        ],
        stored(CONFIGMAPS, core("ConfigMap", "many", data=many_keys(40_000))),
        deleted(f"{CONFIGMAPS}/many"),
    ),
    Attack(
        "ingress",
        lambda: [
            post(
                dry(INGRESSES),
                {
                    "apiVersion": "networking.k8s.io/v1",
                    "kind": "Ingress",
                    "metadata": {"name": "attacks"},
                    "spec": {
                        "rules": [
                            {
                                "host": f"h{n}.example.com",
                                "http": {
                                    "paths": [
                                        {
                                            "path": f"/p{n}",
                                            "pathType": "Prefix",
                                            "backend": {"service": {"name": "a", "port": {"number": 80}}},
                                        }
                                    ]
                                },
                            }
                            for n in range(15_000)
                        ]
                    },
                },
            )
        ],
    ),
    Attack(
        "endpoints",
        lambda: [
            post(
                dry(f"{NAMESPACE}/endpoints"),
                core(
                    "Endpoints",
                    "attacks",
                    subsets=[
                        {
                            "addresses": [{"ip": f"10.{n % 200}.{n // 200 % 200}.7"} for n in range(40_000)],
                            "ports": [{"port": 80}],
                        }
                    ],
                ),
            )
        ],
    ),
    Attack(
        "role-rules",
        lambda: [
            post(
                dry(ROLES),
                {
                    "apiVersion": "rbac.authorization.k8s.io/v1",
                    "kind": "Role",
                    "metadata": {"name": "attacks"},
                    "rules": [{"apiGroups": [""], "resources": [f"r{n}"], "verbs": ["get"]} for n in range(30_000)],
                },
            )
        ],
    ),
    Attack(
        "invalid-many",
        lambda: [post(dry(f"{NAMESPACE}/pods"), pod([{"name": f"C_{n}", "image": ""} for n in range(20_000)]))],
    ),
    Attack(
        "unknown-fields",
        lambda: [
            post(
                dry(f"{NAMESPACE}/pods"),
                pod([{"name": f"c{n}", "image": "a", f"unknown{n}": 1} for n in range(20_000)]),
            )
        ],
    ),
    Attack(
        "json-patch",
        lambda: [
            Call(
                "PATCH",
                dry(f"{CONFIGMAPS}/patched"),
                json.dumps([{"op": "add", "path": f"/data/k{n}", "value": "x" * 60} for n in range(9_000)]).encode(),
                PATCH,
            )
        ],
        stored(CONFIGMAPS, core("ConfigMap", "patched", data=many_keys(10_000))),
        deleted(f"{CONFIGMAPS}/patched"),
    ),
    Attack(
        "json-patch-list",
        lambda: [
            Call(
                "PATCH",
                dry(f"{DEPLOYMENTS}/attacks"),
                json.dumps(
                    [
                        {
                            "op": "add",
                            "path": "/spec/template/spec/containers/0/args/0",
                            "value": f"argument-{n}",
                        }
                        for n in range(10_000)
                    ]
                ).encode(),
                PATCH,
            )
        ],
        stored(DEPLOYMENTS, deployment(10_000)),
        deleted(f"{DEPLOYMENTS}/attacks"),
    ),
    Attack(
        "merge-patch",
        lambda: [
            Call(
                "PATCH",
                dry(f"{CONFIGMAPS}/merged"),
                json.dumps({"data": many_keys(60_000, "new")}).encode(),
                MERGE,
            )
        ],
        stored(CONFIGMAPS, core("ConfigMap", "merged", data=many_keys(30_000))),
        deleted(f"{CONFIGMAPS}/merged"),
    ),
    Attack(
        "custom-3mb",
        lambda: [post(dry(custom_path("kept")), custom("kept", "a", spec=nested(10, 3)))],
        lambda: [post(DEFINITIONS, definition("kept", PRESERVED))],
        deleted(f"{DEFINITIONS}/kept.{GROUP}"),
        1,
    ),
    Attack(
        "yaml",
        lambda: [
            Call(
                "POST",
                dry(CONFIGMAPS),
                b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: large}\ndata:\n"
                + b"".join(b"  key-%d: value%d\n" % (n, n) for n in range(30_000)),
                "application/yaml",
            )
        ],
    ),
]
