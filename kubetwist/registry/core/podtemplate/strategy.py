"""Strategy of PodTemplates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....api.errors import FieldError
from ....api.resource import JSONObject
from ...generic.strategy import Strategy
from ..pod.defaults import default_pod_template
from ..pod.gates import drop_of_template
from ..pod.warnings import template_warnings, unchanged
from . import validation


class PodTemplateStrategy(Strategy):
    """v1 PodTemplate."""

    has_generation = True
    delete_returns_object = True

    def default(self, obj: JSONObject) -> None:
        """The template is a struct in Go: always there."""
        default_pod_template(obj.setdefault("template", {}))

    def prepare_for_create(self, obj: JSONObject) -> None:
        """Drop what is behind gates that are closed."""
        drop_of_template(obj.get("template"), None, self.open_gates)

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Likewise, but for what is there already."""
        drop_of_template(obj.get("template"), old.get("template"), self.open_gates)

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """The template."""
        return validation.validate_pod_template(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """The template."""
        return validation.validate_pod_template(obj, old)

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """The template."""
        return [] if unchanged(obj, old) else template_warnings(obj.get("template"), "template")


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "PodTemplate": PodTemplateStrategy(),
}
