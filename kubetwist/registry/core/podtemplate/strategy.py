"""Strategy of PodTemplates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....api.errors import FieldError
from ....api.resource import JSONObject
from ...generic.strategy import Strategy
from ..pod.defaults import default_pod_template
from ..pod.gates import disabled_pod_fields, drop_of_template
from ..pod.validation.options import PodValidationOptions
from ..pod.warnings import template_warnings, unchanged
from . import validation


class PodTemplateStrategy(Strategy):
    """Strategy of v1 PodTemplate."""

    has_generation = True
    delete_returns_object = True

    def configure(self) -> None:
        """Decide which fields of templates are dropped, and what their validation permits."""
        self._disabled = disabled_pod_fields(self.features)
        self._options = PodValidationOptions(self.features)

    def default(self, obj: JSONObject) -> None:
        """Set the defaults of the template."""
        default_pod_template(obj.setdefault("template", {}), self.features)

    def prepare_for_create(self, obj: JSONObject) -> None:
        """Drop fields of disabled feature gates."""
        drop_of_template(obj.get("template"), None, self._disabled)

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Drop fields of disabled feature gates, unless the old object has them."""
        drop_of_template(obj.get("template"), old.get("template"), self._disabled)

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate the template."""
        return validation.validate_pod_template(obj, self._options)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate the template."""
        return validation.validate_pod_template(obj, self._options.for_update(old.get("template")))

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Return the warnings about the template."""
        return [] if unchanged(obj, old) else template_warnings(obj.get("template"), "template", self.features)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "PodTemplate": PodTemplateStrategy(),
}
