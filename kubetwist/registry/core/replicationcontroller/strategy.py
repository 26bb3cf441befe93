"""Strategy of ReplicationControllers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....api.errors import FieldError
from ....api.names import validate_long_name
from ....api.resource import JSONObject
from ...generic.strategy import Strategy
from ..pod.defaults import default_pod_template
from ..pod.gates import disabled_pod_fields, drop_of_template
from ..pod.validation.options import PodValidationOptions
from ..pod.warnings import name_warnings, template_warnings, unchanged
from . import validation


class ReplicationControllerStrategy(Strategy):
    """Strategy of v1 ReplicationController."""

    has_generation = True
    has_status = True
    status_protects = ()
    default_garbage_collection = "orphan"

    def configure(self) -> None:
        """Decide which fields of templates are dropped, and what their validation permits."""
        self._disabled = disabled_pod_fields(self.features)
        self._options = PodValidationOptions(self.features)

    def validate_name(self, name: str, prefix: bool) -> Sequence[str]:
        """Return the errors of a name; see L{validate_long_name}."""
        return validate_long_name(name, prefix)

    def default(self, obj: JSONObject) -> None:
        """Set the defaults of the selector and labels, which are the labels of the template."""
        spec = obj.setdefault("spec", {})
        template = spec.get("template")
        if template is not None:
            default_pod_template(template, self.features)
            labels = template["metadata"].get("labels")
            if labels:
                if not spec.get("selector"):
                    spec["selector"] = dict(labels)
                metadata = obj.setdefault("metadata", {})
                if not metadata.get("labels"):
                    metadata["labels"] = dict(labels)
        if spec.get("replicas") is None:
            spec["replicas"] = 1

    def prepare_for_create(self, obj: JSONObject) -> None:
        """Drop fields of disabled feature gates."""
        super().prepare_for_create(obj)
        drop_of_template(obj["spec"].get("template"), None, self._disabled)

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Drop fields of disabled feature gates, unless the old object has them."""
        super().prepare_for_update(obj, old)
        drop_of_template(obj["spec"].get("template"), old["spec"].get("template"), self._disabled)

    def reset_status(self, obj: JSONObject) -> None:
        """Set the number of replicas to 0."""
        obj["status"] = {"replicas": 0}

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate the spec."""
        return validation.validate_replication_controller(obj, self._options)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate the spec, whose selector may change."""
        options = self._options.for_update(old["spec"].get("template"))
        return validation.validate_replication_controller(obj, options)

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate the numbers of replicas."""
        return validation.validate_replica_set_status(obj)

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Return warnings about the name, which is part of the names of pods, and the template."""
        texts = [] if old else name_warnings(obj["metadata"]["name"])
        return (
            texts
            if unchanged(obj, old)
            else texts + template_warnings(obj["spec"].get("template"), "spec.template", self.features)
        )


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "ReplicationController": ReplicationControllerStrategy(),
}
