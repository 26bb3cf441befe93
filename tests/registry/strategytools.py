"""Objects of built-in kinds, and the results of their strategies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from kubetwist.api.errors import FieldError, errors_in_release
from kubetwist.api.featuregates import DEFAULT_RELEASE, FeatureGates, Release
from kubetwist.registry.generic.strategy import Strategy
from kubetwist.registry.strategies import strategy_for

CONTAINER = {"name": "c", "image": "app:1"}


def copy(obj: Any) -> Any:
    """Return a copy of an object."""
    return orjson.loads(orjson.dumps(obj))


def made(group: str, kind: str, **parts: Any) -> dict[str, Any]:
    """Return an object of a kind with defaults, as it is validated."""
    obj: dict[str, Any] = copy({"metadata": {"name": "x", "namespace": "ns", "uid": "u"}, **parts})
    strategy_for(group, kind).default(obj)
    strategy_for(group, kind).prepare_for_create(obj)
    return obj


def texts(errors: Sequence[FieldError], release: Release = DEFAULT_RELEASE) -> list[str]:
    """Return the errors that a release reports."""
    return [str(error) for error in errors_in_release(errors, FeatureGates(release))]


def _strategy(group: str, kind: str, release: Release) -> Strategy:
    """Return the strategy of a kind in a server of a release."""
    return strategy_for(group, kind).with_features(FeatureGates(release))


def problems(group: str, kind: str, release: Release = DEFAULT_RELEASE, **parts: Any) -> list[str]:
    """Return the validation errors of a new object."""
    return texts(_strategy(group, kind, release).validate(made(group, kind, **parts)), release)


def change_problems(
    group: str, kind: str, old: dict[str, Any], new: dict[str, Any], release: Release = DEFAULT_RELEASE
) -> list[str]:
    """Return the validation errors of an update; both states are given as differences from an empty object."""
    before, after = made(group, kind, **old), made(group, kind, **new)
    return texts(_strategy(group, kind, release).validate_update(after, before), release)


def status_problems(
    group: str, kind: str, old: dict[str, Any], new: dict[str, Any], release: Release = DEFAULT_RELEASE
) -> list[str]:
    """Return the validation errors of an update of the status."""
    return texts(_strategy(group, kind, release).validate_status_update(copy(new), copy(old)), release)


def warnings_for(group: str, kind: str, **parts: Any) -> list[str]:
    """Return the warnings for a new object."""
    return list(strategy_for(group, kind).warnings(made(group, kind, **parts), None))


def new_status_problems(group: str, kind: str, status: dict[str, Any]) -> list[str]:
    """Return the validation errors of a status."""
    obj = {"metadata": {"name": "x"}, "spec": {}, "status": status}
    return texts(strategy_for(group, kind).validate_status_update(obj, {}))


#: A text of less than 256 characters and more than 256 bytes.
LONG = "\u00e4" * 129
SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def defaulted(group: str, kind: str, **parts: Any) -> dict[str, Any]:
    """Return an object of a kind with its defaults."""
    obj: dict[str, Any] = {"metadata": {"name": "x"}, **parts}
    strategy_for(group, kind).default(obj)
    return obj
