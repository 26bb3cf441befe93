"""
Flags of the metrics at C{/metrics}.

@see: kubernetes/component-base, C{metrics/options.go}, C{metrics/api/v1/config.go}.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from ...api.decoding import BodyError, decode_yaml
from ...api.errors import FieldError, invalid
from ...api.flagvalues import FlagValues
from ...metrics.options import MetricsOptions
from ..flagtypes import STRING, STRINGS, FlagType, flag_group

_LABEL: Final = "[a-zA-Z_][a-zA-Z0-9_]*"
_NAME: Final = "[a-zA-Z_:][a-zA-Z0-9_:]*"
_KEY: Final = re.compile(f"({_NAME}),({_LABEL})")
#: Maximum size, in bytes, of a manifest.
_MOST: Final = 1 << 20


def _pairs(text: str) -> dict[str, str]:
    """Parse as pflag parses C{stringToString}: one pair verbatim, several as CSV."""
    pairs = [text.strip('"')] if text.count("=") == 1 else next(csv.reader([text]), [])
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"{pair} must be formatted as key=value")
        found[key] = value
    return found


PAIRS: Final = FlagType(_pairs, "stringToString", merge=lambda one, other: {**one, **other})

FLAGS: Final = flag_group(
    "Metrics",
    [
        (
            "show-hidden-metrics-for-version",
            STRING,
            "",
            "The previous release, such as 1.35: /metrics shows metrics that are hidden since that release.",
        ),
        ("disabled-metrics", STRINGS, (), "Names of metrics that are disabled."),
        (
            "allow-metric-labels",
            PAIRS,
            {},
            "Allowed values of a metric label, as name,label=value,value; other values become unexpected.",
        ),
        (
            "allow-metric-labels-manifest",
            STRING,
            "",
            "YAML file with the same mapping: a string of values for each name,label.",
        ),
    ],
)


def make_metrics_options(options: FlagValues) -> MetricsOptions:
    """
    Return the metrics selection of the flags.

    @raise ValueError: The flags are inconsistent.
    """
    major, _, minor = options["kubernetes-version"].partition(".")
    release = (int(major), int(minor))
    hidden_version, disabled = options["show-hidden-metrics-for-version"], options["disabled-metrics"]
    mapping, manifest = options["allow-metric-labels"], options["allow-metric-labels-manifest"]
    problems = [
        *_problems_of_version(hidden_version, release),
        *_problems_of_names(disabled),
        *_problems_of_keys(mapping),
    ]
    read: Mapping[str, str] = {}
    if manifest:
        try:
            read = _read(manifest)
        except ValueError as error:
            problems.append(_invalid("allowListMappingManifest", manifest, str(error)))
    if mapping and manifest:
        problems.append(_invalid("", mapping, "cannot specify both allowListMapping and allowListMappingManifest"))
    if problems:
        raise ValueError(", ".join(f"{one.field}: {one.message}" for one in problems))
    allowed = {}
    for key, values in (mapping or read).items():
        name, _, label = key.partition(",")
        allowed[name, label] = frozenset(values.split(","))
    return MetricsOptions(release, frozenset(disabled), allowed, bool(hidden_version))


def _invalid(field: str, value: object, detail: str) -> FieldError:
    return invalid(f"metrics.{field}" if field else "metrics", value, detail)


def _problems_of_version(hidden_version: str, release: tuple[int, int]) -> Iterator[FieldError]:
    valid = f"{release[0]}.{release[1] - 1}"
    if hidden_version and hidden_version != valid:
        detail = f"must be omitted or have the value '{valid}'; only the previous minor version is allowed"
        yield _invalid("showHiddenMetricsForVersion", hidden_version, detail)


def _problems_of_names(names: Iterable[str]) -> Iterator[FieldError]:
    for name in names:
        if not re.fullmatch(_NAME, name):
            detail = f'must be fully qualified metric names matching "^{_NAME}$", got "{name}"'
            yield _invalid("disabledMetrics", list(names), detail)
            return


def _problems_of_keys(mapping: Mapping[str, str], field: str = "allowListMapping") -> Iterator[FieldError]:
    if not all(_KEY.fullmatch(key) for key in mapping):
        yield _invalid(
            field,
            dict(mapping),
            f'must have keys with format `metricName,labelName` where metricName matches "{_NAME}" and labelName'
            f' matches "{_LABEL}"',
        )


def _read(path: str) -> dict[str, str]:
    try:
        with Path(path).open("rb") as file:
            content = file.read(_MOST + 1)
    except OSError as error:
        raise ValueError(f"failed to read allow list manifest: {error.strerror}: {path}") from None
    try:
        if len(content) > _MOST:
            raise ValueError(f"it has more than {_MOST} bytes")
        mapping = decode_yaml(content).value
    except (ValueError, BodyError) as error:
        raise ValueError(f"failed to parse allow list manifest: {error}") from None
    if mapping is not None and not isinstance(mapping, dict):
        raise ValueError("failed to parse allow list manifest: it is not a mapping")
    read = {key: "" if value is None else str(value) for key, value in (mapping or {}).items()}
    for problem in _problems_of_keys(read, ""):
        raise ValueError(f"invalid allow list mapping in manifest: {problem.field}: {problem.message}")
    return read
