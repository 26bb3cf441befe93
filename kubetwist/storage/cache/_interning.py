"""Interned texts of labels and fields, which records share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...api.record import (
    NO_LABELS,
    Record,
)

#: Maximum number of interned strings; beyond that, the table is cleared.
MAX_INTERNED_STRINGS: Final = 50_000

_texts: dict[str, str] = {}


def intern_strings(record: Record) -> Record:
    """Replace the labels, fields and namespace of a record by equal texts of other records, and return the record."""
    record.labels = _shared(record.labels)
    record.fields = _shared(record.fields)
    record.namespace = _texts.setdefault(record.namespace, record.namespace)
    return record


def _shared(strings: Mapping[str, str]) -> Mapping[str, str]:
    # Not sys.intern: some versions of Python never free what is interned there, and these are clients' texts.
    if not strings:
        return NO_LABELS
    if len(_texts) > MAX_INTERNED_STRINGS:
        _texts.clear()
    same = _texts.setdefault
    return {same(name, name): same(value, value) for name, value in strings.items()}
