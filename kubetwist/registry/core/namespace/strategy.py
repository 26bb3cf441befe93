"""Strategy of Namespaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....api.errors import FieldError
from ....api.names import validate_dns1123_label
from ....api.objectmeta import Rule
from ....api.resource import JSONObject
from ...generic.strategy import Strategy
from . import validation

#: The label by which selectors can choose a namespace by name.
NAME_LABEL: Final = "kubernetes.io/metadata.name"


class NamespaceStrategy(Strategy):
    """v1 Namespace; how it ends is the store's business."""

    metadata_update_rules: Sequence[Rule] = ("whole", "compare")
    has_status = True
    status_protects = ()
    delete_returns_object = True

    def validate_name(self, name: str, prefix: bool) -> Sequence[str]:
        """A namespace's name is a label in DNS."""
        return validate_dns1123_label(name, prefix)

    def default(self, obj: JSONObject) -> None:
        """C{spec} and C{status} are structs in Go: always there."""
        obj.setdefault("spec", {})
        status = obj.setdefault("status", {})
        if not status.get("phase"):
            status["phase"] = "Active"
        self._set_name_label(obj)

    def _set_name_label(self, obj: JSONObject) -> None:
        metadata = obj.setdefault("metadata", {})
        name = metadata.get("name")
        if name:
            labels = metadata.get("labels")
            if labels is None:
                labels = metadata["labels"] = {}
            labels[NAME_LABEL] = name

    def prepare_for_create(self, obj: JSONObject) -> None:
        """A new namespace is active and waits, when it is deleted, for its contents to go."""
        super().prepare_for_create(obj)
        finalizers = obj["spec"].setdefault("finalizers", [])
        if "kubernetes" not in finalizers:
            finalizers.append("kubernetes")
        self._set_name_label(obj)

    def reset_status(self, obj: JSONObject) -> None:
        """Active."""
        obj["status"] = {"phase": "Active"}

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """C{spec.finalizers} belong to the finalize subresource, status to its own."""
        finalizers = (old.get("spec") or {}).get("finalizers")
        if finalizers:
            obj["spec"]["finalizers"] = finalizers
        else:
            obj["spec"].pop("finalizers", None)
        super().prepare_for_update(obj, old)

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Finalizers with proper names."""
        return validation.validate_namespace(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Nothing that could be wrong may change."""
        return ()

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """The phase follows the deletion."""
        return validation.validate_namespace_status(obj)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "Namespace": NamespaceStrategy(),
}
