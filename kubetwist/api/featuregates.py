"""
Feature gates and releases: what a server of one release enables.

Rules that differ between releases ask a L{FeatureGates}: L{FeatureGates.enabled} where the reference asks a gate,
L{FeatureGates.since} where a release changed a rule without a gate. Both are asked when a server or a strategy is
built, not for each request.

@see: k8s.io/component-base, C{featuregate/feature_gate.go} and C{compatibility/version.go}.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final, NamedTuple

from .componentglobals import read_settings, read_version
from .flagvalues import FlagValues
from .go.parsebool import format_bool

#: The release that the server has if none is selected.
DEFAULT_RELEASE: Final = (1, 36)

#: A release: major and minor.
Release = tuple[int, int]

#: Settings of all gates of a stage at once.
_STAGES: Final = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}

#: The first release that can be emulated.
_FIRST_EMULATED: Final = (1, 31)


class GateState(NamedTuple):
    """
    The state of a feature gate from a release on.

    @ivar since: The release.
    @ivar stage: C{"ALPHA"}, C{"BETA"}, C{"GA"}, C{"DEPRECATED"}; C{"REMOVED"} if the gate no longer exists,
        C{"UNGATED"} if it does not exist yet, but servers behave as if it was set to C{default}; C{"PRE-ALPHA"} if
        the server knows the gate, but the emulated release does not.
    @ivar default: Whether the feature is enabled by default; always, if the gate does not exist.
    @ivar locked: Whether the gate cannot be set to another value.
    @ivar minimum: The lowest C{--min-compatibility-version} for which the state applies.
    """

    since: Release
    stage: str
    default: bool
    locked: bool
    minimum: Release = (0, 0)

    @property
    def exists(self) -> bool:
        """Whether the gate can be named."""
        return self.stage not in ("REMOVED", "UNGATED", "PRE-ALPHA")


_PRE_ALPHA: Final = GateState((0, 0), "PRE-ALPHA", default=False, locked=False)

#: The gates of all releases that set the gates of a stage.
_EVERYTHING: Final = {name: (GateState((0, 0), stage, default=False, locked=False),) for name, stage in _STAGES.items()}


@cache
def known_gates() -> Mapping[str, tuple[GateState, ...]]:
    """
    Return the gates of all releases with their states, oldest first.

    The table is C{featuregates.csv}: C{gate,since,stage,default,locked}, and C{minimum} in few rows.
    """
    gates: dict[str, list[GateState]] = {}
    release = cache(parse_release)
    for name, since, stage, default, locked, *minimum in _rows("featuregates.csv"):
        state = GateState(release(since), stage, default == "true", bool(locked), *map(release, minimum))
        gates.setdefault(name, []).append(state)
    return {name: tuple(states) for name, states in gates.items()}


@cache
def dependencies() -> Mapping[str, tuple[tuple[str, Release], ...]]:
    """
    Return the gates that a gate requires, each with the first release that checks it.

    The table is C{featuregatedependencies.csv}: C{gate,requires,since}.
    """
    required: dict[str, list[tuple[str, Release]]] = {}
    for name, requirement, since in _rows("featuregatedependencies.csv"):
        required.setdefault(name, []).append((requirement, parse_release(since)))
    return {name: tuple(requirements) for name, requirements in required.items()}


def parse_release(text: str) -> Release:
    """Return C{(1, 36)} for C{"1.36"}."""
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def format_release(release: Release) -> str:
    """Return C{"1.36"} for C{(1, 36)}."""
    return "{}.{}".format(*release)


class FeatureGates:
    """
    The gates of a server, and its release; immutable.

    @ivar release: The release whose behaviour the server has.
    @ivar emulated: The release whose gates and APIs it has: the same, or an older one.
    @ivar minimum: The oldest release of servers that it shares its storage with.
    """

    def __init__(
        self,
        release: Release = DEFAULT_RELEASE,
        settings: Mapping[str, bool] | None = None,
        emulated: Release | None = None,
        minimum: Release | None = None,
    ) -> None:
        """
        @param release: The release whose behaviour the server has.
        @param settings: The gates that are set; C{AllAlpha} and C{AllBeta} set those that are not named.
        @param emulated: The release whose gates and APIs it has; C{release} by default.
        @param minimum: The oldest release of servers that it shares its storage with; by default the one before
            C{emulated}.
        @raise ValueError: A gate is unknown in the release, locked to the other value, or requires a disabled one.
        """
        self.release = release
        self.emulated = emulated or release
        previous = self.emulated[0], self.emulated[1] - 1
        self.minimum = minimum or (previous if emulated is None else max(previous, _floor(release)))
        self._settings = dict(settings or {})
        self._gates = {**_EVERYTHING, **known_gates()}
        self._states = {name: self._state(states, self.minimum) for name, states in self._gates.items()}
        _raise_all([*self._wrong_settings()])
        self._values = {name: self._value(name, state) for name, state in self._states.items()}
        _raise_all([*self._missing_requirements()])

    @classmethod
    def from_options(cls, options: FlagValues) -> FeatureGates:
        """
        Return the gates of a server with a command line; the same instance for the same flags.

        @param options: The parsed flags C{--kubernetes-version}, C{--emulated-version}, C{--min-compatibility-version}
            and C{--feature-gates}; defaults if they are missing.
        @raise ValueError: See the constructor; or versions are malformed or out of range.
        """
        version: str | None = options.get("kubernetes-version")
        return _shared(
            parse_release(version) if version else DEFAULT_RELEASE,
            tuple(sorted((name, tuple(pairs)) for name, pairs in options.get("feature-gates", {}).items())),
            tuple(options.get("emulated-version", ())),
            tuple(options.get("min-compatibility-version", ())),
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

    def meets(self, condition: str) -> bool:
        """
        Return whether the server meets the condition of a row of a table.

        @param condition: Names of gates, C{>=1.34} for a release and later ones, C{<1.34} for earlier ones, separated
            by commas; all of them must hold. C{""} always holds.
        """
        return not condition or all(self._term_holds(term) for term in condition.split(","))

    def _term_holds(self, term: str) -> bool:
        if term.startswith(">="):
            return self.since(*parse_release(term[2:]))
        if term.startswith("<"):
            return not self.since(*parse_release(term[1:]))
        return self.enabled(term)

    def state(self, name: str) -> GateState | None:
        """Return the state of a gate in the emulated release; L{None} if it does not have the gate."""
        state = self._states.get(name)
        return state if state is not None and state.exists else None

    def existing(self) -> Iterator[tuple[str, GateState]]:
        """Return the gates of the emulated release, sorted by name, with their states."""
        for name in sorted(self._states):
            state = self.state(name)
            if state is not None:
                yield name, state

    def warnings(self) -> Iterator[str]:
        """Return warnings about gates that are set, in the words of the reference."""
        for name, value in sorted(self._settings.items()):
            state = self.state(name)
            if state is not None and state.stage in ("GA", "DEPRECATED"):
                stage = "GA" if state.stage == "GA" else "deprecated"
                setting = f"{name}={format_bool(value)}"
                yield f"Setting {stage} feature gate {setting}. It will be removed in a future release."
        if self.emulated < self.release:
            alpha = [name for name, state in self.existing() if state.stage == "ALPHA" and self.enabled(name)]
            if alpha:
                yield (
                    "component has alpha features enabled in emulated version, this is unsupported:"
                    f" features=[{' '.join(alpha)}]"
                )

    def described(self) -> list[str]:
        """
        Return the gates that can be set as the help lists them.

        Gates that are deprecated or GA are omitted.
        """
        lines = []
        for name, states in self._gates.items():
            current, newest = self._states[name], self._state(states, self.emulated)
            texts = [_describe(name, current)]
            if newest != current and newest is not None:
                texts.append(
                    f"{_describe(name, newest)} if --min-compatibility-version>={format_release(newest.minimum)}"
                )
            if texts[0]:
                lines.append(", or ".join(texts))
        return sorted(lines)

    def _state(self, states: Sequence[GateState], minimum: Release) -> GateState | None:
        """
        Return the state of a gate in the emulated release.

        @return: L{None} for a gate that the release does not know.
        """
        known = [state for state in states if state.since <= self.release]
        if not known or known[-1].stage == "REMOVED":
            return known[-1] if known else None
        usable = [state for state in known if state.since <= self.emulated and state.minimum <= minimum]
        if not usable:
            return _PRE_ALPHA
        current = usable[-1]
        # A newer server has the gate, also when it emulates a release without it.
        return current._replace(stage="GA") if current.stage == "UNGATED" and known[-1] != current else current

    def _value(self, name: str, state: GateState | None) -> bool:
        if state is None:
            return False
        if not state.exists:
            return state.default
        if name in self._settings:
            return self._settings[name]
        for everything, stage in _STAGES.items():
            if stage == state.stage and everything in self._settings:
                return self._settings[everything]
        return state.default

    def _wrong_settings(self) -> Iterator[str]:
        for name, value in self._settings.items():
            state = self._states.get(name)
            if state is None or state.stage in ("REMOVED", "UNGATED"):
                yield f"unrecognized feature gate: {name}"
                return
            if state.locked and value != state.default:
                yield (
                    f"cannot set feature gate {name} to {format_bool(value)}, feature is locked to"
                    f" {format_bool(state.default)}"
                )
            elif state is _PRE_ALPHA:
                minimum = f", min compatibility version {format_release(self.minimum)}" if self.since(1, 35) else ""
                yield (
                    f"cannot set feature gate {name} to {format_bool(value)}, feature is PreAlpha at emulated version"
                    f" {format_release(self.emulated)}{minimum}"
                )

    def _missing_requirements(self) -> Iterator[str]:
        for name, requirements in dependencies().items():
            if self._values[name] and self.state(name) is not None:
                disabled = [
                    required
                    for required, since in requirements
                    if since <= self.release and self._is_disabled_gate(required)
                ]
                if disabled:
                    yield f"{name} is enabled, but depends on features that are disabled: [{' '.join(disabled)}]"

    def _is_disabled_gate(self, name: str) -> bool:
        state = self._states[name]
        return state is not None and state.stage not in ("REMOVED", "UNGATED") and not self._values[name]


@lru_cache(maxsize=32)
def _shared(
    release: Release,
    components: tuple[tuple[str, tuple[str, ...]], ...],
    emulated: tuple[str, ...],
    minimum: tuple[str, ...],
) -> FeatureGates:
    versions = read_version(emulated), read_version(minimum)
    settings = read_settings(dict(components))
    features = FeatureGates(release, settings, *versions)
    if any(versions):
        _raise_all([*_wrong_versions(features)])
    return features


def _wrong_versions(features: FeatureGates) -> Iterator[str]:
    floor, binary = format_release(_floor(features.release)), format_release(features.release)
    emulated, minimum = format_release(features.emulated), format_release(features.minimum)
    if not _floor(features.release) <= features.emulated <= features.release:
        yield f"emulation version {emulated} is not between [{floor}, {binary}.0]"
    if features.minimum > features.emulated or features.minimum < _floor(features.release):
        yield f"minCompatibilityVersion version {minimum} is not between [{floor}, {emulated}]"


def _floor(release: Release) -> Release:
    """Return the oldest release that a release can emulate and be compatible with."""
    return min(max((release[0], release[1] - 3), _FIRST_EMULATED), release)


def _describe(name: str, state: GateState | None) -> str:
    if state is None or state.stage not in ("ALPHA", "BETA"):
        return ""
    return f"{name}=true|false ({state.stage} - default={format_bool(state.default)})"


def _raise_all(errors: Sequence[str]) -> None:
    """Raise a L{ValueError} with all errors, if there are any, as Go's aggregated errors."""
    unique = list(dict.fromkeys(errors))
    if unique:
        raise ValueError(unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]")


def _rows(name: str) -> Iterable[list[str]]:
    with files(__package__).joinpath(name).open() as table:
        reader = csv.reader(table)
        next(reader)
        return list(reader)
