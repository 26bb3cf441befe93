"""
Defaults of pods and pod templates.

See kubernetes, C{pkg/apis/core/v1/defaults.go}. The reference sets a few of these in its conversion.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from ....api.featuregates import FeatureGates
from ....api.jsontypes import JSONValue
from ....api.podspecs import containers, declared_containers
from ....api.quantity import Quantity
from ....api.resource import JSONObject

#: Annotations of releases before 1.6, which conversion removes from pods and templates.
_INIT_CONTAINERS: Final = frozenset(
    f"pod.{stage}.kubernetes.io/init-container{section}"
    for stage in ("alpha", "beta")
    for section in ("s", "-statuses")
)


def drop_init_container_annotations(meta: JSONObject) -> None:
    """Remove the annotations that formerly represented init containers: see C{pkg/apis/core/v1/conversion.go}."""
    annotations = meta.get("annotations")
    if annotations and not _INIT_CONTAINERS.isdisjoint(annotations):
        remaining = {name: text for name, text in annotations.items() if name not in _INIT_CONTAINERS}
        if remaining:
            meta["annotations"] = remaining
        else:
            del meta["annotations"]


def default_pod_template(template: JSONObject, features: FeatureGates) -> None:
    """
    Set the defaults of a template, which always has a spec.

    @param template: The template; modified.
    @param features: The feature gates and the release of the server.
    """
    drop_init_container_annotations(template.setdefault("metadata", {}))
    spec = template.get("spec")
    if spec is None:
        spec = template["spec"] = {}
    default_pod_spec(spec, features)


def default_pod_spec(spec: JSONObject, features: FeatureGates) -> None:
    """
    Set the defaults of the spec of pods and templates.

    @param spec: The spec; modified.
    @param features: The feature gates and the release of the server.
    """
    if not spec.get("dnsPolicy"):
        spec["dnsPolicy"] = "ClusterFirst"
    if not spec.get("restartPolicy"):
        spec["restartPolicy"] = "Always"
    if not spec.get("schedulerName"):
        spec["schedulerName"] = "default-scheduler"
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for container, _, _ in containers(spec):
        _default_container(container)
    for volume in spec.get("volumes") or ():
        default_volume(volume, features)
    round_up(spec.get("overhead"))
    round_up_resources(spec.get("resources"))


def default_pod(obj: JSONObject, features: FeatureGates) -> None:
    """
    Set the defaults of pods only: service links, host ports, and requests from limits.

    @param obj: The pod; modified.
    @param features: The feature gates and the release of the server.
    """
    drop_init_container_annotations(obj["metadata"])
    spec = obj.get("spec")
    if spec is None:
        spec = obj["spec"] = {}
    default_pod_spec(spec, features)
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    host_network = spec.get("hostNetwork")
    for container, _, _ in declared_containers(spec):
        if host_network:
            for port in container.get("ports") or ():
                if not port.get("hostPort") and port.get("containerPort"):
                    port["hostPort"] = port["containerPort"]
        resources = container["resources"]
        limits = resources.get("limits")
        if limits:
            requests = resources.setdefault("requests", {})
            for resource, quantity in limits.items():
                requests.setdefault(resource, quantity)
    resources = spec.get("resources")
    if resources and features.enabled("PodLevelResources") and not features.enabled("PodLevelResourcesFixDefaulting"):
        if features.since(1, 33):
            _default_pod_limits(spec, resources, features)
        if resources.get("limits"):
            _default_pod_requests(spec, resources, features)
    if not features.since(1, 33) and features.enabled("InPlacePodVerticalScaling"):
        _default_resize_policies(spec)


def complete_pod_resources(spec: JSONObject, features: FeatureGates) -> None:
    """
    Set missing resources of a new pod, since 1.37, from the resources of its containers.

    Limits are set if all containers have them.
    """
    resources = spec.get("resources")
    if not resources or not (resources.get("limits") or resources.get("requests")):
        return
    spec["resources"] = resources = {name: dict(value) if value else value for name, value in resources.items()}
    limits = resources.get("limits") or {}
    every = [container["resources"].get("limits") or {} for container, _, _ in declared_containers(spec)]
    for name, quantity in _altogether(spec, "limits").items():
        if name in _OVERCOMMITTED and all(name in one for one in every):
            limits.setdefault(name, str(quantity))
    if limits:
        resources["limits"] = limits
    _default_pod_limits(spec, resources, features)
    if resources.get("limits"):
        _default_pod_requests(spec, resources, features)


def keep_pod_resources(spec: JSONObject, old: JSONObject) -> None:
    """Restore the resources of a pod that an update omits, for manifests without the values that were set."""
    resources, before = spec.get("resources"), old.get("resources")
    if resources and before:
        spec["resources"] = {
            **resources,
            **{
                section: {**before[section], **(resources.get(section) or {})}
                for section in ("limits", "requests")
                if before.get(section)
            },
        }


def _default_resize_policies(spec: JSONObject) -> None:
    """Set the resize policies of containers that request resources, a default until 1.32."""
    for container in spec.get("containers") or ():
        requests = container["resources"].get("requests") or {}
        existing = {policy.get("resourceName") for policy in container.get("resizePolicy") or ()}
        for name in _OVERCOMMITTED:
            if name in requests and name not in existing:
                policy = {"resourceName": name, "restartPolicy": "NotRequired"}
                container["resizePolicy"] = [*(container.get("resizePolicy") or ()), policy]


def _default_pod_limits(spec: JSONObject, resources: JSONObject, features: FeatureGates) -> None:
    """Set the limits of the pod for huge pages to those of its containers; since 1.34, unless the pod requests some."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    if not limits and not requests:
        return
    for name, quantity in _altogether(spec, "limits").items():
        if name.startswith("hugepages-") and (name not in requests or not features.since(1, 34)):
            limits.setdefault(name, str(quantity))
    if limits:
        resources["limits"] = limits


def _default_pod_requests(spec: JSONObject, resources: JSONObject, features: FeatureGates) -> None:
    """Set the requests of the pod to those of its containers, or to its limits."""
    has_pages = features.since(1, 33)
    requests = resources.get("requests") or {}
    for name, quantity in _altogether(spec, "requests").items():
        if name in _OVERCOMMITTED:
            requests.setdefault(name, str(quantity))
    for name, limit in resources["limits"].items():
        if name in _OVERCOMMITTED or (has_pages and name.startswith("hugepages-")):
            requests.setdefault(name, limit)
    if requests:
        resources["requests"] = requests


#: Resources of pods that can be overcommitted.
_OVERCOMMITTED: Final = ("cpu", "memory")


def _altogether(spec: JSONObject, section: str) -> dict[str, Quantity]:
    """Return the resources that containers use at the same time, including those of init containers."""
    running: dict[str, Quantity] = {}
    for container in spec.get("containers") or ():
        _add(running, _amounts(container, section))
    going_on: dict[str, Quantity] = {}
    starting: dict[str, Quantity] = {}
    for container in spec.get("initContainers") or ():
        amounts = _amounts(container, section)
        if container.get("restartPolicy") == "Always":
            _add(running, amounts)
            _add(going_on, amounts)
            amounts = going_on
        else:
            _add(amounts, going_on)
        for name, amount in amounts.items():
            if name not in starting or starting[name] < amount:
                starting[name] = amount
    for name, amount in starting.items():
        if name not in running or running[name] < amount:
            running[name] = amount
    return running


def _amounts(container: JSONObject, section: str) -> dict[str, Quantity]:
    return {name: Quantity.parse(amount) for name, amount in (container["resources"].get(section) or {}).items()}


def _add(total: dict[str, Quantity], amounts: dict[str, Quantity]) -> None:
    for name, amount in amounts.items():
        total[name] = total[name] + amount if name in total else amount


def _default_container(container: JSONObject) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(container.get("image") or "")
    if not container.get("terminationMessagePath"):
        container["terminationMessagePath"] = "/dev/termination-log"
    if not container.get("terminationMessagePolicy"):
        container["terminationMessagePolicy"] = "File"
    resources = container.get("resources")
    if resources is None:
        container["resources"] = {}
    else:
        round_up_resources(resources)
    ports = container.get("ports")
    if ports:
        for port in ports:
            if not port.get("protocol"):
                port["protocol"] = "TCP"
    env = container.get("env")
    if env:
        for variable in env:
            source = variable.get("valueFrom")
            if source:
                reference = source.get("fieldRef")
                if reference is not None and not reference.get("apiVersion"):
                    reference["apiVersion"] = "v1"
                reference = source.get("resourceFieldRef")
                if reference is not None:
                    reference.setdefault("divisor", "0")
                reference = source.get("fileKeyRef")
                if reference is not None and reference.get("optional") is None:
                    reference["optional"] = False
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is not None:
            _default_probe(probe)
    lifecycle = container.get("lifecycle")
    if lifecycle:
        for name in ("postStart", "preStop"):
            handler = lifecycle.get(name)
            if handler and handler.get("httpGet") is not None:
                _default_http_get(handler["httpGet"])


def round_up_resources(resources: JSONObject | None) -> None:
    """Round up limits and requests."""
    if resources:
        for section in ("limits", "requests"):
            round_up(resources.get(section))


def round_up(amounts: JSONObject | None) -> None:
    """
    Round quantities up to whole thousandths, in place (C{SetDefaults_ResourceList}).

    @param amounts: Quantities in canonical form: only those with a small suffix or a negative exponent can be finer.
    """
    if not amounts:
        return
    for name, amount in amounts.items():
        if isinstance(amount, str) and (amount[-1:] in ("n", "u") or "e-" in amount or "E-" in amount):
            quantity = Quantity.parse(amount)
            if quantity.nanos % 10**6:
                amounts[name] = str(Quantity(quantity.scaled_value(-3) * 10**6, quantity.family))


def pull_policy(image: str) -> str:
    """Return the default pull policy of an image: Always for the tag C{latest}."""
    match = _IMAGE.fullmatch(image) if len(image) <= _MAX_IMAGE_LENGTH else None
    if match is None or len(match["path"]) > _MAX_PATH_LENGTH - (0 if "/" in image else len("library/")):
        return "IfNotPresent"
    tag, digest = match["tag"], match["digest"]
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"


#: Maximum length of a repository path, C{library/} included for paths with one name only.
_MAX_PATH_LENGTH: Final = 255
#: Maximum length of an image reference that is parsed; more than any valid one.
_MAX_IMAGE_LENGTH: Final = 600
#: An image reference: the registry host, the path, the tag and the digest.
_HOST: Final = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_PATH: Final = "[a-z0-9]+(?:(?:[.]|__?|-+)[a-z0-9]+)*"
_IMAGE: Final = re.compile(
    rf"(?:(?:localhost|{_HOST}(?:[.]{_HOST})+|(?=[^/]*[A-Z]){_HOST}|{_HOST}(?:[.]{_HOST})*:[0-9]+|"
    rf"\[[a-fA-F0-9:]+\](?::[0-9]+)?)/)?(?![0-9a-f]{{64}}$)(?P<path>{_PATH}(?:/{_PATH})*)(?::(?P<tag>\w[\w.-]{{0,127}}))?"
    rf"(?:@(?P<digest>sha256:[0-9a-f]{{64}}|sha384:[0-9a-f]{{96}}|sha512:[0-9a-f]{{128}}))?",
    re.ASCII,
)


def _default_probe(probe: JSONObject) -> None:
    if not probe.get("timeoutSeconds"):
        probe["timeoutSeconds"] = 1
    if not probe.get("periodSeconds"):
        probe["periodSeconds"] = 10
    if not probe.get("successThreshold"):
        probe["successThreshold"] = 1
    if not probe.get("failureThreshold"):
        probe["failureThreshold"] = 3
    get = probe.get("httpGet")
    if get is not None:
        _default_http_get(get)
    grpc = probe.get("grpc")
    if grpc is not None and grpc.get("service") is None:
        grpc["service"] = ""


def _default_http_get(get: JSONObject) -> None:
    if not get.get("path"):
        get["path"] = "/"
    if not get.get("scheme"):
        get["scheme"] = "HTTP"


# --- volumes -----------------------------------------------------------------------------------------------------


def default_volume(volume: JSONObject, features: FeatureGates) -> None:
    """
    Set the default source of a volume, an empty directory, and the defaults of its source.

    @param volume: The volume; modified.
    @param features: The feature gates and the release of the server.
    """
    empty = True
    for name, source in list(volume.items()):
        if name == "name" or source is None:
            continue
        empty = False
        fill = _VOLUME_DEFAULTS.get(name)
        if fill is not None and (name != "image" or features.enabled("ImageVolume")):
            fill(source)
    if empty:
        volume["emptyDir"] = {}


def _fill(**defaults: JSONValue) -> Callable[[JSONObject], None]:
    def fill(source: JSONObject) -> None:
        for name, value in defaults.items():
            if source.get(name) in (None, ""):
                source[name] = value

    return fill


def _downward_items(source: JSONObject) -> None:
    for item in source.get("items") or ():
        reference = item.get("fieldRef")
        if reference is not None and not reference.get("apiVersion"):
            reference["apiVersion"] = "v1"
        reference = item.get("resourceFieldRef")
        if reference is not None:
            reference.setdefault("divisor", "0")


def _downward_api(source: JSONObject) -> None:
    if source.get("defaultMode") is None:
        source["defaultMode"] = 420
    _downward_items(source)


def _projected(source: JSONObject) -> None:
    if source.get("defaultMode") is None:
        source["defaultMode"] = 420
    source.setdefault("sources", None)
    for projection in source["sources"] or ():
        token = projection.get("serviceAccountToken")
        if token is not None and token.get("expirationSeconds") is None:
            token["expirationSeconds"] = 3600
        downward = projection.get("downwardAPI")
        if downward is not None:
            _downward_items(downward)


def _ephemeral(source: JSONObject) -> None:
    template = source.get("volumeClaimTemplate")
    if template is not None:
        template.setdefault("metadata", {})
        default_claim_spec(template.setdefault("spec", {}))


def default_claim_spec(spec: JSONObject) -> None:
    """Set the defaults of the spec of a claim or claim template."""
    if spec.get("volumeMode") is None:
        spec["volumeMode"] = "Filesystem"
    round_up_resources(spec.setdefault("resources", {}))


def complete_data_sources(spec: JSONObject) -> None:
    """Set C{dataSource} and C{dataSourceRef} from each other, unless the reference has a namespace."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        spec["dataSourceRef"] = dict(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = {name: value for name, value in reference.items() if name != "namespace"}


def _image_volume(source: JSONObject) -> None:
    if not source.get("pullPolicy"):
        source["pullPolicy"] = pull_policy(source.get("reference") or "")


def _host_path(source: JSONObject) -> None:
    if source.get("type") is None:
        source["type"] = ""


def _azure_disk(source: JSONObject) -> None:
    _fill(cachingMode="ReadWrite", kind="Shared", fsType="ext4", readOnly=False)(source)


#: The defaults of volume sources, also for PersistentVolumes.
VOLUME_SOURCE_DEFAULTS: Final[dict[str, Callable[[JSONObject], None]]] = {
    "hostPath": _host_path,
    "iscsi": _fill(iscsiInterface="default"),
    "rbd": _fill(pool="rbd", user="admin", keyring="/etc/ceph/keyring"),
    "azureDisk": _azure_disk,
    "scaleIO": _fill(storageMode="ThinProvisioned", fsType="xfs"),
}

_VOLUME_DEFAULTS: Final[dict[str, Callable[[JSONObject], None]]] = {
    **VOLUME_SOURCE_DEFAULTS,
    "secret": _fill(defaultMode=420),
    "configMap": _fill(defaultMode=420),
    "downwardAPI": _downward_api,
    "projected": _projected,
    "ephemeral": _ephemeral,
    "image": _image_volume,
}
