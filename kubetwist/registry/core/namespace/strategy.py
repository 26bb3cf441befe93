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

#: The label with the name of the namespace, for selectors.
NAME_LABEL: Final = "kubernetes.io/metadata.name"


class NamespaceStrategy(Strategy):
    """Strategy of v1 Namespace; L{kubetwist.registry.core.namespace.store.NamespaceStore} deletes namespaces."""

    metadata_update_rules: Sequence[Rule] = ("whole", "compare")
    has_status = True
    status_protects = ()
    delete_returns_object = True

    def validate_name(self, name: str, prefix: bool) -> Sequence[str]:
        """Return the errors of a name, which must be a DNS label."""
        return validate_dns1123_label(name, prefix)

    def default(self, obj: JSONObject) -> None:
        """Set C{spec} and C{status}, which Go never omits."""
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
        """Set the status and the finalizer C{kubernetes} of a new namespace."""
        super().prepare_for_create(obj)
        finalizers = obj["spec"].setdefault("finalizers", [])
        if "kubernetes" not in finalizers:
            finalizers.append("kubernetes")
        self._set_name_label(obj)

    def reset_status(self, obj: JSONObject) -> None:
        """Set the phase Active."""
        obj["status"] = {"phase": "Active"}

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Restore C{spec.finalizers}, which only the subresource finalize changes, and the status."""
        finalizers = (old.get("spec") or {}).get("finalizers")
        if finalizers:
            obj["spec"]["finalizers"] = finalizers
        else:
            obj["spec"].pop("finalizers", None)
        super().prepare_for_update(obj, old)

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate the names of finalizers."""
        return validation.validate_namespace(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Return no errors, as all fields that need validation are restored."""
        return ()

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate that the phase is Terminating if and only if the namespace is being deleted."""
        return validation.validate_namespace_status(obj)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "Namespace": NamespaceStrategy(),
}
