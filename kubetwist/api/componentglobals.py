"""
The values of flags whose parts name components: C{--feature-gates}, C{--emulated-version} and
C{--min-compatibility-version}.

The API server has one component, C{kube}, which is also the component of values without a name.

@see: k8s.io/component-base, C{compatibility/registry.go} and C{featuregate/feature_gate.go}.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from .go.parsebool import parse_bool
from .go.quote import quoted

#: The component of the server.
KUBE: Final = "kube"

_VERSION: Final = re.compile(r"\s*v?([0-9]+(?:\.[0-9]+)*)(.*)", re.S)


def split_components(text: str) -> dict[str, tuple[str, ...]]:
    """
    Return the settings of C{--feature-gates} by component; the component is C{""} if it is not named.

    C{kube:A=true,kube:B=false} is C{{"kube": ("A=true", "B=false")}}.
    """
    components: dict[str, tuple[str, ...]] = {}
    for pair in text.split(","):
        if pair:
            component, colon, setting = pair.partition(":")
            if not colon:
                component, setting = "", pair
            component = component.strip()
            components[component] = (*components.get(component, ()), setting.strip())
    return components


def merge_components(
    one: Mapping[str, tuple[str, ...]], other: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Append the settings of a repeated flag."""
    return {name: (*one.get(name, ()), *other.get(name, ())) for name in (*one, *(set(other) - set(one)))}


def read_settings(components: Mapping[str, Sequence[str]]) -> dict[str, bool]:
    """
    Return the settings of gates; later ones of a gate win.

    @param components: See L{split_components}.
    @raise ValueError: A component is unknown, or a setting is malformed.
    """
    if "" in components and KUBE in components:
        raise ValueError(
            "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use"
        )
    settings: dict[str, bool] = {}
    for component, pairs in components.items():
        if component not in ("", KUBE):
            raise ValueError(f"component not registered: {component}")
        for pair in pairs:
            name, equals, text = (part.strip() for part in pair.partition("="))
            if not pair:
                continue
            if not equals:
                raise ValueError(f"missing bool value for {name}")
            try:
                settings[name] = parse_bool(text)
            except ValueError as error:
                raise ValueError(f"invalid value of {name}={text}, err: {error}") from None
    return settings


def read_version(values: Sequence[str]) -> tuple[int, int] | None:
    """
    Return the version of C{kube} in the value of a flag of versions; L{None} if it has none.

    @param values: Versions with or without a component: C{("kube=1.35",)} or C{("1.35",)}.
    @raise ValueError: A component is unknown or named twice, or a version is malformed or of a patch release.
    """
    versions: dict[str, tuple[int, int]] = {}
    for value in values:
        component, equals, text = (part.strip() for part in value.partition("="))
        if not equals:
            component, text = KUBE, value
        major, minor, *patch = _parse_version(text)
        if patch and patch[0]:
            numbers = ".".join(map(str, (major, minor, *patch)))
            raise ValueError(f"patch version not allowed, got: {component}={numbers}")
        if component in versions:
            earlier = "{}.{}".format(*versions[component])
            raise ValueError(f"duplicate version flag, {component}={earlier} and {component}={major}.{minor}")
        versions[component] = major, minor
    for component in versions:
        if component != KUBE:
            raise ValueError(f"component not registered: {component}")
    return versions.get(KUBE)


def _parse_version(text: str) -> tuple[int, ...]:
    match = _VERSION.fullmatch(text)
    if match is None:
        raise ValueError(f"could not parse {quoted(text)} as version")
    numbers = match[1].split(".")
    if len(numbers) < 2:
        raise ValueError(f"illegal version string {quoted(text)}")
    if numbers[0].startswith("0") and numbers[0] != "0":
        raise ValueError(f"illegal zero-prefixed version component {quoted(numbers[0])} in {quoted(text)}")
    return tuple(map(int, numbers))
