"""
The ReplicationController controller, which shares the code of the ReplicaSet controller.

@see: kubernetes, C{pkg/controller/replication}.
"""

from __future__ import annotations

from typing import ClassVar

from ...api.resource import GroupVersionKind, JSONObject
from ...api.selectors import LabelSelector, label_selector_from_object
from .replicaset import ReplicaSetController


class ReplicationControllerController(ReplicaSetController):
    """Creates and deletes the pods of ReplicationControllers."""

    name: ClassVar[str] = "replicationcontroller-controller"
    service_account: ClassVar[str] = "replication-controller"
    kind: ClassVar[GroupVersionKind] = GroupVersionKind("", "v1", "ReplicationController")
    resource: ClassVar[str] = "replicationcontrollers"
    counts_terminating: ClassVar[bool] = False

    def selector(self, obj: JSONObject) -> LabelSelector:
        """Return the label selector of an object, whose C{selector} is a map of labels."""
        return label_selector_from_object({"matchLabels": obj["spec"].get("selector") or {}})
