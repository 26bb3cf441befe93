"""Tests for L{kubetwist.schema.merge.managedfields}."""

from __future__ import annotations

from typing import Any

import orjson

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.schema.merge.fieldset import field_set_from_paths
from kubetwist.schema.merge.managedfields import (
    APPLY,
    UPDATE,
    Entry,
    MalformedEntries,
    Manager,
    cap_update_managers,
    decode_client_entries,
    decode_stored_entries,
    encode_entries,
    is_reset_request,
)


def entry(**parts: Any) -> dict[str, Any]:
    """Return an encoded entry."""
    return {
        "manager": "m",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {}},
        **parts,
    }


def at(second: int) -> str:
    """Return a time."""
    return f"2026-01-01T00:00:{second:02d}Z"


class EntriesTests(SynchronousTestCase):
    """Tests for the encoding and decoding of entries."""

    def test_round_trip(self) -> None:
        """Unchanged entries are encoded as they were stored."""
        entries = [entry(manager="a", operation="Apply"), entry(time=at(1), subresource="status")]
        written = encode_entries(decode_stored_entries(entries))
        self.assertEqual(written, entries)
        self.assertIs(written[0], entries[0])

    def test_time(self) -> None:
        """An entry with another time is encoded with the same fields, at the same positions."""
        for parts in ({}, {"time": at(1)}, {"time": at(1), "manager": "", "subresource": "status"}):
            ((key, decoded),) = decode_stored_entries([entry(**parts)]).items()
            ((_, stored),) = decode_stored_entries(encode_entries({key: decoded._replace(source=None)})).items()
            later = stored.at(at(2))
            expected = encode_entries({key: later._replace(source=None)})
            self.assertEqual(orjson.dumps(encode_entries({key: later})), orjson.dumps(expected))
            self.assertEqual((later.fields, expected[0]["time"]), (decoded.fields, at(2)))

    def test_order(self) -> None:
        """Entries are sorted by operation, time, manager, version and subresource; a missing time comes first."""
        entries = [
            entry(operation="Apply", manager="z"),
            entry(operation="Apply", manager="a", time=at(1)),
            entry(manager="z", time=at(1)),
            entry(manager="a", time=at(2), apiVersion="v1"),
            entry(manager="a", time=at(2), apiVersion="v1", subresource="status"),
            entry(manager="a", time=at(2), apiVersion="v2"),
        ]
        self.assertEqual(encode_entries(decode_stored_entries(reversed(entries))), entries)

    def test_identity(self) -> None:
        """
        Updates in two versions are two entries, applies of all versions one, and the last of equal entries counts.
        """
        managers = decode_stored_entries(
            [entry(), entry(apiVersion="v2"), entry(operation="Apply"), entry(operation="Apply", apiVersion="v2")]
        )
        self.assertEqual([found.api_version for found in managers.values()], ["v1", "v2", "v2"])

    def test_new_entry(self) -> None:
        """A new entry is encoded without empty fields."""
        managers = {Manager(APPLY, "me", "", ""): Entry("v1", "", field_set_from_paths([("f:a",)]))}
        expected = {"manager": "me", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1"}
        self.assertEqual(encode_entries(managers), [{**expected, "fieldsV1": {"f:a": {}}}])

    def test_reset(self) -> None:
        """An empty list, or a list with one empty entry, resets ownership."""
        self.assertEqual(
            [is_reset_request(sent) for sent in (None, [], [{}], [{}, {}], [entry()])],
            [False, True, True, False, False],
        )

    def test_malformed(self) -> None:
        """One invalid entry of a client makes all its entries invalid."""
        for bad in (
            {"operation": "Replace"},
            {"apiVersion": ""},
            {"fieldsType": ""},
            {"fieldsType": "FieldsV2"},
            {"fieldsV1": {"data": {}}},
        ):
            self.assertRaises(MalformedEntries, decode_client_entries, [entry(), entry(manager="other", **bad)])

    def test_client_entries(self) -> None:
        """The sets of clients are converted to canonical form."""
        [found] = decode_client_entries([entry(fieldsV1={'k:{"b":1, "a":2}': {".": {}}})]).values()
        self.assertEqual(found.fields, {'k:{"a":2,"b":1}': {}})

    def test_manager_text(self) -> None:
        """Conflicts contain the version of updaters, and the subresource of all managers."""
        self.assertEqual(str(Manager(UPDATE, "me", "apps/v1", "")), '"me" using apps/v1')
        self.assertEqual(str(Manager(APPLY, "me", "", "status")), '"me" with subresource "status"')


class CapTests(SynchronousTestCase):
    """Tests for the limit on update entries."""

    def managers(self, count: int, **parts: Any) -> dict[Manager, Entry]:
        """Return update entries of one field each, the oldest first."""
        return decode_stored_entries(
            entry(manager=f"m{number:02d}", time=at(number), fieldsV1={f"f:x{number}": {}}, **parts)
            for number in range(count)
        )

    def test_under(self) -> None:
        """Ten update entries are not merged, and apply entries do not count."""
        managers = {**self.managers(10), **self.managers(5, operation="Apply")}
        before = dict(managers)
        cap_update_managers(managers)
        self.assertEqual(managers, before)

    def test_over(self) -> None:
        """The two oldest entries are merged, with the time of the newer one."""
        managers = self.managers(11)
        cap_update_managers(managers)
        names = [manager.name for manager in managers]
        self.assertEqual(len(names), 10)
        self.assertNotIn("m00", names)
        self.assertNotIn("m01", names)
        merged = managers[Manager(UPDATE, "ancient-changes", "v1", "")]
        self.assertEqual((merged.fields, merged.time), ({"f:x0": {}, "f:x1": {}}, at(1)))

    def test_versions_apart(self) -> None:
        """Only entries of the same version are merged."""
        managers = self.managers(11)
        oldest = Manager(UPDATE, "m00", "v1", "")
        managers[oldest._replace(api_version="v2")] = managers.pop(oldest)._replace(api_version="v2")
        cap_update_managers(managers)
        self.assertIn(oldest._replace(api_version="v2"), managers)
        self.assertEqual(managers[Manager(UPDATE, "ancient-changes", "v1", "")].fields, {"f:x1": {}, "f:x2": {}})
