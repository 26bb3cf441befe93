"""Strategies of TokenReviews, SelfSubjectReviews and TokenRequests, which are not stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...api.resource import JSONObject
from ..generic.strategy import Strategy


class TokenRequestStrategy(Strategy):
    """Tokens expire after an hour by default."""

    def default(self, obj: JSONObject) -> None:
        """See L{Strategy.default}."""
        spec = obj.setdefault("spec", {})
        if spec.get("expirationSeconds") is None:
            spec["expirationSeconds"] = 3600


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "SelfSubjectReview": Strategy(),
    "TokenReview": Strategy(),
    "TokenRequest": TokenRequestStrategy(),
}
