"""Table rows of Ingresses, IngressClasses, NetworkPolicies, ServiceCIDRs, IPAddresses and ClusterCIDRs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ...api.jsontypes import JSONValue
from ...api.resource import JSONObject
from ..core.service.printers import load_balancer
from ..generic.printers.ages import Cell, age
from ..generic.printers.columns import AGE, NAME, Column, Field, Rows, described_before, wide
from ..generic.printers.texts import NONE, name_of, selector_cell, spec_of, status_of


def ingress(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of an Ingress: class, hosts, addresses and ports."""
    spec = spec_of(obj)
    yield name_of(obj)
    yield spec.get("ingressClassName", NONE)
    yield _hosts(spec.get("rules") or ())
    yield load_balancer(status_of(obj))
    yield "80, 443" if spec.get("tls") else "80"
    yield age(obj)


def _hosts(rules: JSONValue) -> str:
    # The remaining number counts rules, not hosts, from the rule after the third host.
    hosts: list[str] = []
    for rule in rules:
        if len(hosts) == 3:
            return f"{','.join(hosts)} + {len(rules) - 3} more..."
        if rule.get("host"):
            hosts.append(rule["host"])
    return ",".join(hosts) or "*"


def ingress_class(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of an IngressClass: controller and parameters."""
    spec = spec_of(obj)
    parameters = spec.get("parameters")
    yield name_of(obj)
    yield spec.get("controller", "")
    if parameters is None:
        yield NONE
    else:
        kind = parameters.get("kind", "")
        if parameters.get("apiGroup") is not None:
            kind = f"{kind}.{parameters['apiGroup']}"
        yield f"{kind}/{parameters.get('name', '')}"
    yield age(obj)


def marked_ingress_class(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of an IngressClass; the name of the default class is marked."""
    name, *rest = ingress_class(obj)
    annotations = obj["metadata"].get("annotations") or {}
    yield f"{name} (default)" if annotations.get(_DEFAULT_CLASS) == "true" else name
    yield from rest


def network_policy(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a NetworkPolicy: its pod selector."""
    yield name_of(obj)
    yield selector_cell(spec_of(obj).get("podSelector"))
    yield age(obj)


def service_cidr(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a ServiceCIDR: its CIDRs."""
    yield name_of(obj)
    yield ",".join(spec_of(obj).get("cidrs") or ())
    yield age(obj)


def ip_address(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of an IPAddress: its parent. The reference prints an age without a column."""
    parent = spec_of(obj).get("parentRef")
    yield name_of(obj)
    if parent is None:
        yield NONE
    else:
        group, resource = parent.get("group", ""), parent.get("resource", "")
        parts = [(f"{resource}.{group}" if group else resource).lower()]
        if parent.get("namespace"):
            parts.append(parent["namespace"])
        yield "/".join([*parts, parent.get("name", "")])
    yield age(obj)


def cluster_cidr(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a ClusterCIDR of releases before 1.29: per-node bits and CIDRs."""
    spec = spec_of(obj)
    yield name_of(obj)
    yield str(spec.get("perNodeHostBits", 0))
    yield spec.get("ipv4") or NONE
    yield spec.get("ipv6") or NONE
    yield age(obj)
    yield "MatchAll" if spec.get("nodeSelector") is None else "<set>"


#: The description before 1.36, of the type of extensions/v1beta1.
_POD_SELECTOR: Final = (
    "Selects the pods to which this NetworkPolicy object applies.  The array of ingress rules is applied to any pods "
    "selected by this field. Multiple network policies can select the same set of pods.  In this case, the ingress "
    "rules for each are combined additively. This field is NOT optional and follows standard label selector semantics. "
    "An empty podSelector matches all pods in this namespace."
)

#: The annotation of the class of Ingresses without one.
_DEFAULT_CLASS: Final = "ingressclass.kubernetes.io/is-default-class"

#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "Ingress": (
        NAME,
        Column("Class", "The name of the IngressClass resource that should be used for additional configuration"),
        Column("Hosts", "Hosts that incoming requests are matched against before the ingress rule"),
        Column("Address", "Address is a list containing ingress points for the load-balancer"),
        Column("Ports", "Ports of TLS configurations that open"),
        AGE,
    ),
    "IngressClass": (
        NAME,
        Column("Controller", "Controller that is responsible for handling this class"),
        Column("Parameters", "A reference to a resource with additional parameters"),
        AGE,
    ),
    "NetworkPolicy": (
        NAME,
        *described_before(
            "1.36",
            _POD_SELECTOR,
            Column("Pod-Selector", Field("api.networking.v1.NetworkPolicySpec", "podSelector")),
        ),
        AGE,
    ),
    "ServiceCIDR": (
        NAME,
        Column("CIDRs", Field("api.networking.v1.ServiceCIDRSpec", "cidrs")),
        AGE,
    ),
    "IPAddress": (
        NAME,
        Column("ParentRef", Field("api.networking.v1.IPAddressSpec", "parentRef")),
    ),
    "ClusterCIDR": (
        NAME,
        Column("PerNodeHostBits", Field("api.networking.v1alpha1.ClusterCIDRSpec", "perNodeHostBits")),
        Column("IPv4", Field("api.networking.v1alpha1.ClusterCIDRSpec", "ipv4")),
        Column("IPv6", Field("api.networking.v1alpha1.ClusterCIDRSpec", "ipv6")),
        AGE,
        wide("NodeSelector", Field("api.networking.v1alpha1.ClusterCIDRSpec", "nodeSelector")),
    ),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Rows]] = {
    "Ingress": ingress,
    "IngressClass": {"<1.36": ingress_class, "": marked_ingress_class},
    "NetworkPolicy": network_policy,
    "ServiceCIDR": service_cidr,
    "IPAddress": ip_address,
    "ClusterCIDR": cluster_cidr,
}
