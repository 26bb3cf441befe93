"""Interned labels and fields, which records share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...api.record import (
    NO_LABELS,
    Record,
)

#: Maximum number of interned strings; beyond that, the table is cleared.
MAX_INTERNED_STRINGS: Final = 50_000
#: Maximum number of interned labels of an object; beyond that, the table is cleared.
MAX_INTERNED_LABELS: Final = 10_000

# Not sys.intern: some versions of Python never free what is interned there, and these are clients' texts.
_texts: dict[str, str] = {}
_labels: dict[tuple[tuple[str, str], ...], Mapping[str, str]] = {}


def intern_strings(record: Record) -> Record:
    """Replace the labels, fields and namespace of a record by equal ones of other records, and return the record."""
    record.labels = _shared_labels(record.labels)
    # The fields of pods and events are different for each object, only some of the texts are equal.
    record.fields = _shared(record.fields)
    record.namespace = _texts.setdefault(record.namespace, record.namespace)
    return record


def _shared_labels(labels: Mapping[str, str]) -> Mapping[str, str]:
    if not labels:
        return NO_LABELS
    items = tuple(labels.items())
    shared = _labels.get(items)
    if shared is None:
        shared = _shared(labels)
        if len(_labels) >= MAX_INTERNED_LABELS:
            _labels.clear()
        _labels[items] = shared
    return shared


def _shared(strings: Mapping[str, str]) -> Mapping[str, str]:
    if not strings:
        return NO_LABELS
    if len(_texts) > MAX_INTERNED_STRINGS:
        _texts.clear()
    same = _texts.setdefault
    return {same(name, name): same(value, value) for name, value in strings.items()}
