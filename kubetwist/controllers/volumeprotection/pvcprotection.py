"""
Protects PersistentVolumeClaims in use with a finalizer.

@see: kubernetes, C{pkg/controller/volume/pvcprotection}.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from ...api.record import Record
from ...api.resource import JSONObject
from ...registry.stores import decoded_object
from ...storage.cache.window import DELETED
from ..machinery.metadata import controller_of
from ..workloads.pods import phase_of
from .protection import ProtectionController


class ClaimProtection(ProtectionController):
    """Protects claims that are used by pods with a node."""

    name: ClassVar[str] = "persistentvolumeclaim-protection-controller"
    service_account: ClassVar[str] = "pvc-protection-controller"
    resource: ClassVar[str] = "persistentvolumeclaims"
    finalizer: ClassVar[str] = "kubernetes.io/pvc-protection"

    def register_handlers(self) -> None:
        """Register handlers for claims and pods."""
        self._pods = self.watch("", "pods", self._pod_changed)
        self._by_claim = self._pods.index("claim", _claim_keys)
        super().register_handlers()

    def _pod_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        claims = _claim_keys(record)
        if not claims:
            return
        pod = decoded_object(record)
        # A claim is released only by a terminated pod. A pod that has no node may have had one before.
        if event_type == DELETED or phase_of(pod) in ("Succeeded", "Failed") or not pod["spec"].get("nodeName"):
            for key in claims:
                self.queue.add(key)

    def in_use(self, record: Record) -> bool:
        """See L{ProtectionController.in_use}."""
        return any(_uses(decoded_object(pod), record) for pod in self._by_claim.get(record.key))


def _uses(pod: JSONObject, claim: Record) -> bool:
    if not pod["spec"].get("nodeName"):
        return False
    meta = pod["metadata"]
    shut_down = "deletionTimestamp" in meta and meta.get("deletionGracePeriodSeconds") == 0
    for name, ephemeral in _claims(pod):
        if name != claim.name:
            continue
        if not ephemeral:
            return True
        # The pod does not use another claim of the same name.
        if not shut_down and (controller_of(claim) or {}).get("uid") == meta["uid"]:
            return True
    return False


def _claims(pod: JSONObject) -> Iterator[tuple[str, bool]]:
    """Yield the names of a pod's claims, and whether they are ephemeral."""
    for volume in pod["spec"].get("volumes") or ():
        if volume.get("persistentVolumeClaim"):
            yield volume["persistentVolumeClaim"]["claimName"], False
        elif volume.get("ephemeral") is not None:
            yield f"{pod['metadata']['name']}-{volume['name']}", True


def _claim_keys(record: Record) -> list[str]:
    if b'"persistentVolumeClaim":' not in record.item and b'"ephemeral":' not in record.item:
        return []
    return [f"{record.namespace}/{name}" for name in dict.fromkeys(name for name, _ in _claims(decoded_object(record)))]
