"""Strategy of Secrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....api.errors import FieldError
from ....api.objectmeta import Rule
from ....api.resource import JSONObject
from ...generic.strategy import Strategy
from ...generic.validation.tlspairs import tls_problem
from . import validation


class SecretStrategy(Strategy):
    """Strategy of v1 Secret."""

    metadata_update_rules: Sequence[Rule] = ("compare", "whole")

    def default(self, obj: JSONObject) -> None:
        """Set the default type, and move C{stringData}, which is write-only, to C{data}."""
        strings = obj.pop("stringData", None)
        if strings:
            data = obj.get("data")
            if data is None:
                data = obj["data"] = {}
            data.update(validation.encoded(strings))
        if not obj.get("type"):
            obj["type"] = "Opaque"

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Keep the type of the old object if it is omitted."""
        if not obj.get("type"):
            obj["type"] = old.get("type", "Opaque")

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate keys, size and the requirements of the type."""
        return validation.validate_secret(obj)

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Return a warning about an invalid certificate."""
        if obj.get("type") != "kubernetes.io/tls":
            return ()
        problem = tls_problem(obj.get("data") or {})
        return (problem,) if problem else ()

    def compares_empties(self, old: JSONObject) -> bool:
        """Return whether the data are immutable, and thus compared with C{reflect.DeepEqual} in the reference."""
        return bool(old.get("immutable"))

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate that the type and immutable data are unchanged."""
        return validation.validate_secret_update(obj, old)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "Secret": SecretStrategy(),
}
