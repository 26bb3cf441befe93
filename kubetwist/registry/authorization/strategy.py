"""Strategies of access reviews, which are not stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..generic.strategy import Strategy

STRATEGIES: Final[Mapping[str, Strategy]] = {
    "LocalSubjectAccessReview": Strategy(),
    "SelfSubjectAccessReview": Strategy(),
    "SelfSubjectRulesReview": Strategy(),
    "SubjectAccessReview": Strategy(),
}
