"""Levels and versions of the Pod Security Standards, and the policy in the labels of a namespace."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from attrs import evolve, frozen

from ...api.errors import FieldError, invalid

PRIVILEGED: Final = "privileged"
BASELINE: Final = "baseline"
RESTRICTED: Final = "restricted"
#: All levels, the least strict one first.
LEVELS: Final = (PRIVILEGED, BASELINE, RESTRICTED)
LATEST: Final = "latest"
#: The prefix of labels and of audit annotation keys.
PREFIX: Final = "pod-security.kubernetes.io/"
MODES: Final = ("enforce", "audit", "warn")

_VERSION: Final = re.compile(r"v1\.(0|[1-9][0-9]{0,18})", re.ASCII)
_MAX_MINOR: Final = (1 << 63) - 1
_LEVEL_PROBLEM: Final = f"must be one of {', '.join(LEVELS)}"
_VERSION_PROBLEM: Final = 'must be "latest" or "v1.x"'
_LABELS: Final = {
    mode: (f"{PREFIX}{mode}", f"{PREFIX}{mode}-version", f"metadata.labels[{PREFIX}{mode}]") for mode in MODES
}


@frozen
class LevelVersion:
    """
    A level and the version of its checks.

    @ivar minor: The C{x} of C{v1.x}; L{None} for the latest.
    """

    level: str = PRIVILEGED
    minor: int | None = None

    def __str__(self) -> str:
        return f"{self.level}:{LATEST if self.minor is None else f'v1.{self.minor}'}"

    def equivalent(self, other: LevelVersion) -> bool:
        """Return whether both forbid the same."""
        return self == other or self.level == other.level == PRIVILEGED


@frozen
class Policy:
    """The levels at which pods are rejected, audited, and warned about."""

    enforce: LevelVersion = LevelVersion()
    audit: LevelVersion = LevelVersion()
    warn: LevelVersion = LevelVersion()

    @property
    def fully_privileged(self) -> bool:
        """Return whether everything is allowed without warnings or audit annotations."""
        return self.enforce.level == self.audit.level == self.warn.level == PRIVILEGED

    def equivalent(self, other: Policy) -> bool:
        """Return whether both have the same effect."""
        return (
            self.enforce.equivalent(other.enforce)
            and self.audit.equivalent(other.audit)
            and self.warn.equivalent(other.warn)
        )


def level_problem(text: object) -> str:
    """Return the error text for an invalid level; C{""} for a valid one."""
    return "" if text in LEVELS else _LEVEL_PROBLEM


def parse_version(text: object) -> int | None:
    """
    Return the minor version of C{v1.x}; L{None} for C{latest}.

    @raise ValueError: The text is not a version.
    """
    if text == LATEST:
        return None
    match = _VERSION.fullmatch(text) if isinstance(text, str) else None
    if match is None or int(match[1]) > _MAX_MINOR:
        raise ValueError(_VERSION_PROBLEM)
    return int(match[1])


def stricter(one: str, other: str) -> bool:
    """Return whether level C{one} is stricter than level C{other}."""
    return LEVELS.index(one) > LEVELS.index(other)


def policy_to_evaluate(labels: Mapping[str, str], defaults: Policy) -> tuple[Policy, list[FieldError]]:
    """
    Return the policy in the labels of a namespace, and the errors of the labels (C{PolicyToEvaluate}).

    An invalid level becomes C{restricted} for C{enforce} and C{privileged} for C{audit} and C{warn}; an invalid version
    becomes the latest one.
    """
    causes: list[FieldError] = []
    enforce = _level_from_labels(labels, "enforce", defaults.enforce, RESTRICTED, causes)
    audit = _level_from_labels(labels, "audit", defaults.audit, PRIVILEGED, causes)
    warn = _level_from_labels(labels, "warn", defaults.warn, PRIVILEGED, causes)
    is_enforced = labels.get(_LABELS["enforce"][0]) in LEVELS
    if is_enforced and _LABELS["warn"][0] not in labels and stricter(enforce.level, warn.level):
        # The enforce level is also the warn level, for objects that are not enforced, such as pod templates.
        minor = warn.minor if _LABELS["warn"][1] in labels else enforce.minor
        warn = LevelVersion(enforce.level, minor)
    if (enforce, audit, warn) == (defaults.enforce, defaults.audit, defaults.warn):
        return defaults, causes
    return Policy(enforce, audit, warn), causes


def _level_from_labels(
    labels: Mapping[str, str], mode: str, default: LevelVersion, fallback: str, causes: list[FieldError]
) -> LevelVersion:
    level_label, version_label, path = _LABELS[mode]
    level_version = default
    level = labels.get(level_label)
    if level is not None:
        problem = level_problem(level)
        if problem:
            causes.append(invalid(path, level, problem))
        level_version = evolve(level_version, level=fallback if problem else level)
    version = labels.get(version_label)
    if version is not None:
        try:
            level_version = evolve(level_version, minor=parse_version(version))
        except ValueError as error:
            causes.append(invalid(f"{path[:-1]}-version]", version, str(error)))
            level_version = evolve(level_version, minor=None)
    return level_version
