"""Tests for L{kubetwist.schema.merge.managedfields}."""

from __future__ import annotations

from typing import Any

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
    """An entry as it is written."""
    return {
        "manager": "m",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {}},
        **parts,
    }


def at(second: int) -> str:
    """A time."""
    return f"2026-01-01T00:00:{second:02d}Z"


class EntriesTests(SynchronousTestCase):
    """Reading and writing entries."""

    def test_round_trip(self) -> None:
        """Entries that nobody touched are written as they were read."""
        entries = [entry(manager="a", operation="Apply"), entry(time=at(1), subresource="status")]
        written = encode_entries(decode_stored_entries(entries))
        self.assertEqual(written, entries)
        self.assertIs(written[0], entries[0])

    def test_order(self) -> None:
        """Entries are in the order of operation, time, manager, version and subresource; no time is the oldest."""
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
        """Updates in two versions are two entries, applies are one whatever their version, and the last counts."""
        managers = decode_stored_entries(
            [entry(), entry(apiVersion="v2"), entry(operation="Apply"), entry(operation="Apply", apiVersion="v2")]
        )
        self.assertEqual([found.api_version for found in managers.values()], ["v1", "v2", "v2"])

    def test_written(self) -> None:
        """A new entry leaves out what is empty."""
        managers = {Manager(APPLY, "me", "", ""): Entry("v1", "", field_set_from_paths([("f:a",)]))}
        expected = {"manager": "me", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1"}
        self.assertEqual(encode_entries(managers), [{**expected, "fieldsV1": {"f:a": {}}}])

    def test_reset(self) -> None:
        """No entry at all, or a single empty one, says that nobody is to own anything."""
        self.assertEqual(
            [is_reset_request(sent) for sent in (None, [], [{}], [{}, {}], [entry()])],
            [False, True, True, False, False],
        )

    def test_malformed(self) -> None:
        """One bad entry makes all that a client sent unusable."""
        for bad in (
            {"operation": "Replace"},
            {"apiVersion": ""},
            {"fieldsType": ""},
            {"fieldsType": "FieldsV2"},
            {"fieldsV1": {"data": {}}},
        ):
            self.assertRaises(MalformedEntries, decode_client_entries, [entry(), entry(manager="other", **bad)])

    def test_foreign(self) -> None:
        """The sets of clients are brought into the one form."""
        [found] = decode_client_entries([entry(fieldsV1={'k:{"b":1, "a":2}': {".": {}}})]).values()
        self.assertEqual(found.fields, {'k:{"a":2,"b":1}': {}})

    def test_named(self) -> None:
        """Conflicts name the version of updaters, and the subresource of both."""
        self.assertEqual(str(Manager(UPDATE, "me", "apps/v1", "")), '"me" using apps/v1')
        self.assertEqual(str(Manager(APPLY, "me", "", "status")), '"me" with subresource "status"')


class CapTests(SynchronousTestCase):
    """The limit on entries of updates."""

    def managers(self, count: int, **parts: Any) -> dict[Manager, Entry]:
        """Updaters of one field each, the first the oldest."""
        return decode_stored_entries(
            entry(manager=f"m{number:02d}", time=at(number), fieldsV1={f"f:x{number}": {}}, **parts)
            for number in range(count)
        )

    def test_under(self) -> None:
        """Ten are not too many, and applies do not count."""
        managers = {**self.managers(10), **self.managers(5, operation="Apply")}
        before = dict(managers)
        cap_update_managers(managers)
        self.assertEqual(managers, before)

    def test_over(self) -> None:
        """The two oldest become one, which is as old as the younger of them."""
        managers = self.managers(11)
        cap_update_managers(managers)
        names = [manager.name for manager in managers]
        self.assertEqual(len(names), 10)
        self.assertNotIn("m00", names)
        self.assertNotIn("m01", names)
        merged = managers[Manager(UPDATE, "ancient-changes", "v1", "")]
        self.assertEqual((merged.fields, merged.time), ({"f:x0": {}, "f:x1": {}}, at(1)))

    def test_versions_apart(self) -> None:
        """Only entries of one version are merged."""
        managers = self.managers(11)
        oldest = Manager(UPDATE, "m00", "v1", "")
        managers[oldest._replace(api_version="v2")] = managers.pop(oldest)._replace(api_version="v2")
        cap_update_managers(managers)
        self.assertIn(oldest._replace(api_version="v2"), managers)
        self.assertEqual(managers[Manager(UPDATE, "ancient-changes", "v1", "")].fields, {"f:x1": {}, "f:x2": {}})
