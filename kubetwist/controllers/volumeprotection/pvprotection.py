"""
Protects PersistentVolumes in use with a finalizer.

@see: kubernetes, C{pkg/controller/volume/pvprotection}.
"""

from __future__ import annotations

from typing import ClassVar

from ...api.record import Record
from ...registry.stores import decoded_object
from .protection import ProtectionController


class VolumeProtection(ProtectionController):
    """Protects volumes that are bound to a claim."""

    name: ClassVar[str] = "persistentvolume-protection-controller"
    service_account: ClassVar[str] = "pv-protection-controller"
    resource: ClassVar[str] = "persistentvolumes"
    finalizer: ClassVar[str] = "kubernetes.io/pv-protection"

    def in_use(self, record: Record) -> bool:
        """See L{ProtectionController.in_use}."""
        return (decoded_object(record).get("status") or {}).get("phase") == "Bound"
