"""C{matchConditions}: expressions that must all hold for a webhook to be called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...admission.attributes import AdmissionAttributes
from ...api.resource import JSONObject
from ...registry.versions import Form

if TYPE_CHECKING:
    from .compiled import Webhook


class Conditions:
    """The conditions of one webhook, compiled at their first use."""

    def __init__(self, conditions: Sequence[JSONObject]) -> None:
        self._conditions = conditions

    @classmethod
    def make(cls, conditions: Sequence[JSONObject]) -> Conditions | None:
        """Those of a webhook; L{None} when it has none."""
        return cls(conditions) if conditions else None

    async def hold(self, webhook: Webhook, attributes: AdmissionAttributes, form: Form) -> bool:
        """Whether all hold."""
        raise NotImplementedError
