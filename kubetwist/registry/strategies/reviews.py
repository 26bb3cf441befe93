"""Questions about users and rights; nothing of it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..strategy import Strategy

_KINDS: Final = (
    "LocalSubjectAccessReview",
    "SelfSubjectAccessReview",
    "SelfSubjectReview",
    "SelfSubjectRulesReview",
    "SubjectAccessReview",
    "TokenRequest",
    "TokenReview",
)

STRATEGIES: Final[Mapping[str, Strategy]] = {kind: Strategy() for kind in _KINDS}
