"""
Feature gates and releases: what a server of one release enables.

Rules that differ between releases ask a L{FeatureGates}: L{FeatureGates.enabled} where the reference asks a gate,
L{FeatureGates.since} where a release changed a rule without a gate. Both are asked when a server or a strategy is
built, not for each request.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final

from attrs import frozen

from .flagvalues import FlagValues

#: The release that the server has if none is selected.
DEFAULT_RELEASE: Final = (1, 36)

#: A release: major and minor.
Release = tuple[int, int]

#: Settings of all gates of a stage at once.
_STAGES: Final = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}


@frozen
class GateState:
    """
    The state of a feature gate from a release on.

    @ivar since: The release.
    @ivar stage: C{"ALPHA"}, C{"BETA"}, C{"GA"}, C{"DEPRECATED"}; C{"REMOVED"} if the gate no longer exists,
        C{"UNGATED"} if it does not exist yet, but servers behave as if it was set to C{default}.
    @ivar default: Whether the feature is enabled by default; always, if the gate does not exist.
    @ivar locked: Whether the gate cannot be set to another value.
    """

    since: Release
    stage: str
    default: bool
    locked: bool

    @property
    def exists(self) -> bool:
        """Whether the gate can be named."""
        return self.stage not in ("REMOVED", "UNGATED")


@cache
def known_gates() -> Mapping[str, tuple[GateState, ...]]:
    """
    Return the gates of all releases with their states, oldest first.

    The table is C{featuregates.csv}: C{gate,since,stage,default,locked}.
    """
    gates: dict[str, list[GateState]] = {}
    with files(__package__).joinpath("featuregates.csv").open() as table:
        for row in csv.DictReader(table):
            state = GateState(parse_release(row["since"]), row["stage"], row["default"] == "true", bool(row["locked"]))
            gates.setdefault(row["gate"], []).append(state)
    return {name: tuple(sorted(states, key=lambda state: state.since)) for name, states in gates.items()}


def parse_release(text: str) -> Release:
    """Return C{(1, 36)} for C{"1.36"}."""
    major, _, minor = text.partition(".")
    return int(major), int(minor)


class FeatureGates:
    """
    The gates of a server, and its release; immutable.

    @ivar release: The release whose behaviour the server has.
    @ivar emulated: The release whose gates and APIs it has: the same, or an older one.
    """

    def __init__(
        self,
        release: Release = DEFAULT_RELEASE,
        settings: Mapping[str, bool] | None = None,
        emulated: Release | None = None,
    ) -> None:
        """
        @param release: The release whose behaviour the server has.
        @param settings: The gates that are set; C{AllAlpha} and C{AllBeta} set those that are not named.
        @param emulated: The release whose gates and APIs it has; C{release} by default.
        @raise ValueError: A gate is unknown in the release, or locked to the other value.
        """
        self.release = release
        self.emulated = emulated or release
        self._values = dict(self._resolve(settings or {}))

    @classmethod
    def from_options(cls, options: FlagValues) -> FeatureGates:
        """
        Return the gates of a server with a command line; the same instance for the same flags.

        @param options: The parsed flags C{--kubernetes-version} and C{--feature-gates}; defaults if they are missing.
        @raise ValueError: See the constructor.
        """
        version: str | None = options.get("kubernetes-version")
        return _shared(
            parse_release(version) if version else DEFAULT_RELEASE,
            tuple(sorted(options.get("feature-gates", {}).items())),
        )

    def since(self, major: int, minor: int) -> bool:
        """Return whether the server behaves as a release or a later one."""
        return self.release >= (major, minor)

    def enabled(self, name: str) -> bool:
        """
        Return whether a feature is enabled.

        A gate that the release does not have yet is disabled; one that it has no more keeps its last default.

        @raise KeyError: No release has such a gate.
        """
        return self._values[name]

    def state(self, name: str) -> GateState | None:
        """Return the state of a gate in the emulated release; L{None} if it does not have the gate."""
        state = _state(known_gates().get(name, ()), self.emulated)
        return state if state is not None and state.exists else None

    def existing(self) -> Iterator[tuple[str, GateState]]:
        """Return the gates of the emulated release, sorted by name, with their states."""
        for name in sorted(known_gates()):
            state = self.state(name)
            if state is not None:
                yield name, state

    def _resolve(self, settings: Mapping[str, bool]) -> Iterator[tuple[str, bool]]:
        for name, value in settings.items():
            self._check(name, value)
        for name, states in known_gates().items():
            state = _state(states, self.emulated)
            yield name, False if state is None else _value(name, state, settings)

    def _check(self, name: str, value: bool) -> None:
        if name in _STAGES:
            return
        state = self.state(name)
        if state is None:
            raise ValueError(f"unrecognized feature gate: {name}")
        if state.locked and value != state.default:
            locked_to = "true" if state.default else "false"
            written = "true" if value else "false"
            raise ValueError(f"cannot set feature gate {name} to {written}, feature is locked to {locked_to}")


@lru_cache(maxsize=32)
def _shared(release: Release, settings: tuple[tuple[str, bool], ...]) -> FeatureGates:
    return FeatureGates(release, dict(settings))


def _state(states: tuple[GateState, ...], release: Release) -> GateState | None:
    """Return the state of a gate in a release; L{None} before its first one."""
    current = None
    for state in states:
        if state.since > release:
            break
        current = state
    return current


def _value(name: str, state: GateState, settings: Mapping[str, bool]) -> bool:
    if name in settings:
        return settings[name]
    for everything, stage in _STAGES.items():
        if stage == state.stage and not state.locked and everything in settings:
            return settings[everything]
    return state.default
