"""A strategy for kinds whose fields have feature gates."""

from __future__ import annotations

from collections.abc import Sequence

from ...api.resource import JSONObject
from .gates import DisabledFields, GatedField
from .strategy import Strategy


class GatedStrategy(Strategy):
    """
    The default rules, with fields that are dropped while their feature gates are disabled.

    Fields that the stored object uses are kept. A strategy that overrides C{configure} or one of the methods that
    prepare objects calls the method of this class.
    """

    #: The fields of the main resource with feature gates, found in L{gated_part}.
    gated_fields: Sequence[GatedField] = ()
    #: The fields of the status with feature gates, found in the object.
    gated_status_fields: Sequence[GatedField] = ()

    def configure(self) -> None:
        """Select the fields to drop."""
        self._disabled = DisabledFields(self.gated_fields, self.features)
        self._disabled_status = DisabledFields(self.gated_status_fields, self.features)

    def gated_part(self, obj: JSONObject) -> JSONObject:
        """Return the part of an object in which L{gated_fields} are found: the whole object by default."""
        return obj

    def prepare_for_create(self, obj: JSONObject) -> None:
        """Clear the status, and drop the fields of disabled feature gates."""
        super().prepare_for_create(obj)
        self._disabled.drop(self.gated_part(obj))

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Restore the status, and drop the fields of disabled feature gates that the stored object does not use."""
        super().prepare_for_update(obj, old)
        self._disabled.drop(self.gated_part(obj), self.gated_part(old))

    def prepare_for_status_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Restore the spec, and drop the fields of disabled feature gates that the stored object does not use."""
        super().prepare_for_status_update(obj, old)
        self._disabled_status.drop(obj, old)
