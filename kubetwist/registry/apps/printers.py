"""Table rows of Deployments, ReplicaSets, StatefulSets, DaemonSets and ControllerRevisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ...api.resource import JSONObject
from ..core.replicationcontroller.printers import replicas_row
from ..generic.printers.ages import Cell, age
from ..generic.printers.columns import (
    AGE,
    CONTAINERS,
    NAME,
    Column,
    Field,
    Rows,
    core_field,
    described_before,
    integer,
    wide,
)
from ..generic.printers.texts import (
    NONE,
    InvalidSelector,
    container_cells,
    labels_cell,
    name_of,
    selector_cell,
    selector_text,
    spec_of,
    status_of,
)


def replica_set(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a ReplicaSet: desired, current and ready replicas."""
    yield from replicas_row(obj)
    yield from container_cells(spec_of(obj).get("template"))
    yield selector_cell(spec_of(obj).get("selector"))


def deployment(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a Deployment: ready, up-to-date and available replicas."""
    spec, status = spec_of(obj), status_of(obj)
    yield name_of(obj)
    yield f"{status.get('readyReplicas', 0)}/{spec.get('replicas') or 0}"
    yield status.get("updatedReplicas", 0)
    yield status.get("availableReplicas", 0)
    yield age(obj)
    yield from container_cells(spec.get("template"))
    try:
        yield selector_text(spec.get("selector"))
    except InvalidSelector:
        yield "<invalid>"


def stateful_set(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a StatefulSet: ready and desired replicas."""
    spec = spec_of(obj)
    yield name_of(obj)
    yield f"{status_of(obj).get('readyReplicas', 0)}/{spec.get('replicas') or 0}"
    yield age(obj)
    yield from container_cells(spec.get("template"))


def daemon_set(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a DaemonSet: the numbers of pods, and the node selector."""
    spec, status = spec_of(obj), status_of(obj)
    template = spec.get("template") or {}
    yield name_of(obj)
    yield status.get("desiredNumberScheduled", 0)
    yield status.get("currentNumberScheduled", 0)
    yield status.get("numberReady", 0)
    yield status.get("updatedNumberScheduled", 0)
    yield status.get("numberAvailable", 0)
    yield labels_cell((template.get("spec") or {}).get("nodeSelector"))
    yield age(obj)
    yield from container_cells(template)
    yield selector_cell(spec.get("selector"))


def controller_revision(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a ControllerRevision: its controller and revision."""
    owner = NONE
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            group, _, _ = reference.get("apiVersion", "").rpartition("/")
            kind = f"{reference.get('kind', '')}.{group}" if group else reference.get("kind", "")
            owner = f"{kind.lower()}/{reference.get('name', '')}" if kind else reference.get("name", "")
            break
    yield name_of(obj)
    yield owner
    yield obj.get("revision", 0)
    yield age(obj)


def _apps(kind: str, field: str) -> Field:
    return Field(f"api.apps.v1.{kind}", field)


#: Descriptions before 1.36, of types of extensions/v1beta1.
_REPLICA_SET_SELECTOR: Final = (
    "Selector is a label query over pods that should match the replica count. If the selector is empty, it is "
    "defaulted to the labels present on the pod template. Label keys and values that must match in order to be "
    "controlled by this replica set. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors"
)
_DEPLOYMENT_SELECTOR: Final = (
    "Label selector for pods. Existing ReplicaSets whose pods are selected by this will be the ones affected by this "
    "deployment."
)
_READY_NODES: Final = (
    "The number of nodes that should be running the daemon pod and have one or more of the daemon pod running and "
    "ready."
)
_DAEMON_SET_SELECTOR: Final = (
    "A label query over pods that are managed by the daemon set. Must match in order to be controlled. If empty, "
    "defaulted to labels on Pod template. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors"
)

#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "ReplicaSet": (
        NAME,
        integer("Desired", _apps("ReplicaSetSpec", "replicas")),
        integer("Current", _apps("ReplicaSetStatus", "replicas")),
        *described_before(
            "1.33",
            "The number of ready replicas for this replica set.",
            integer("Ready", _apps("ReplicaSetStatus", "readyReplicas")),
        ),
        AGE,
        *CONTAINERS,
        *described_before("1.36", _REPLICA_SET_SELECTOR, wide("Selector", _apps("ReplicaSetSpec", "selector"))),
    ),
    "Deployment": (
        NAME,
        Column("Ready", "Number of the pod with ready state"),
        Column("Up-to-date", _apps("DeploymentStatus", "updatedReplicas")),
        Column("Available", _apps("DeploymentStatus", "availableReplicas")),
        AGE,
        *CONTAINERS,
        *described_before("1.36", _DEPLOYMENT_SELECTOR, wide("Selector", _apps("DeploymentSpec", "selector"))),
    ),
    "StatefulSet": (NAME, Column("Ready", "Number of the pod with ready state"), AGE, *CONTAINERS),
    "DaemonSet": (
        NAME,
        integer("Desired", _apps("DaemonSetStatus", "desiredNumberScheduled")),
        integer("Current", _apps("DaemonSetStatus", "currentNumberScheduled")),
        *described_before("1.36", _READY_NODES, integer("Ready", _apps("DaemonSetStatus", "numberReady"))),
        integer("Up-to-date", _apps("DaemonSetStatus", "updatedNumberScheduled")),
        integer("Available", _apps("DaemonSetStatus", "numberAvailable")),
        Column("Node Selector", core_field("PodSpec", "nodeSelector")),
        AGE,
        *CONTAINERS,
        *described_before("1.36", _DAEMON_SET_SELECTOR, wide("Selector", _apps("DaemonSetSpec", "selector"))),
    ),
    "ControllerRevision": (
        NAME,
        Column("Controller", "Controller of the object"),
        *described_before(
            "1.36",
            "revision indicates the revision of the state represented by Data.",
            Column("Revision", _apps("ControllerRevision", "revision")),
        ),
        AGE,
    ),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Rows]] = {
    "ReplicaSet": replica_set,
    "Deployment": deployment,
    "StatefulSet": stateful_set,
    "DaemonSet": daemon_set,
    "ControllerRevision": controller_revision,
}
