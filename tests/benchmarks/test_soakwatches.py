"""Tests for F{benchmarks/soakwatches.py}: which sequences of events are problems."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ..checkout import load_script

script = load_script("benchmarks/soakwatches.py")
Event, EventLog = script.Event, script.EventLog

CREATED = Event("ADDED", "ns/a", 5)
CHANGED = Event("MODIFIED", "ns/a", 7)
DELETED = Event("DELETED", "ns/a", 9)


class EventLogTests(SynchronousTestCase):
    """Order and completeness."""

    def test_same_sequence(self) -> None:
        """Two watches that receive the same events have no problem."""
        log = EventLog()
        for _ in range(2):
            for position, event in enumerate((CREATED, CHANGED, DELETED)):
                self.assertEqual(log.receive(position, event, 0.0), "")
        self.assertEqual((log.end, log.last), (3, 9))

    def test_skipped_event(self) -> None:
        """A watch that misses an event that another one received is found by its next event."""
        log = EventLog()
        for position, event in enumerate((CREATED, CHANGED, DELETED)):
            log.receive(position, event, 0.0)
        self.assertEqual(log.receive(0, CREATED, 0.0), "")
        self.assertIn("instead of", log.receive(1, DELETED, 0.0))

    def test_order(self) -> None:
        """An event with a revision that is not larger than the one before is a problem."""
        log = EventLog()
        log.receive(0, CHANGED, 0.0)
        self.assertIn("after revision 7", log.receive(1, CREATED, 0.0))
        self.assertIn("after revision 7", log.receive(1, CHANGED, 0.0))

    def test_missing(self) -> None:
        """An acknowledged write without an event is reported once, when the time for it is over."""
        log = EventLog()
        log.acknowledge("MODIFIED", "ns/a", 7, 0.0)
        self.assertTrue(log.is_incomplete)
        self.assertEqual(log.missing(9.0, 10.0), [])
        self.assertEqual(log.missing(10.0, 10.0), ["no event of ns/a at 7"])
        self.assertEqual(log.missing(20.0, 10.0), [])
        self.assertFalse(log.is_incomplete)

    def test_event_after_response(self) -> None:
        """A write whose event arrives after its response is complete; a deletion is found without a revision."""
        log = EventLog()
        log.acknowledge("MODIFIED", "ns/a", 7, 0.0)
        log.acknowledge("DELETED", "ns/a", 0, 0.0)
        log.receive(0, CHANGED, 1.0)
        log.receive(1, DELETED, 1.0)
        self.assertFalse(log.is_incomplete)
        self.assertEqual(log.missing(99.0, 10.0), [])

    def test_event_before_response(self) -> None:
        """A write whose event arrives before its response is complete."""
        log = EventLog()
        log.receive(0, CHANGED, 0.0)
        log.acknowledge("MODIFIED", "ns/a", 7, 1.0)
        self.assertFalse(log.is_incomplete)

    def test_lost_response(self) -> None:
        """The event of a write whose response was lost is no problem, and is forgotten."""
        log = EventLog()
        log.receive(0, CHANGED, 0.0)
        self.assertEqual(log.missing(20.0, 10.0), [])
        log.acknowledge("MODIFIED", "ns/a", 7, 20.0)
        self.assertTrue(log.is_incomplete)

    def test_behind(self) -> None:
        """A watch is behind if another one has received its next event long ago."""
        log = EventLog()
        log.receive(0, CREATED, 0.0)
        self.assertFalse(log.is_behind(0, 9.0, 10.0))
        self.assertTrue(log.is_behind(0, 10.0, 10.0))
        self.assertFalse(log.is_behind(1, 99.0, 10.0))

    def test_trim(self) -> None:
        """Positions stay the same if older events are forgotten."""
        log = EventLog()
        for position, event in enumerate((CREATED, CHANGED, DELETED)):
            log.receive(position, event, 0.0)
        log.trim(2)
        self.assertEqual(log.end, 3)
        self.assertEqual(log.receive(2, DELETED, 0.0), "")
        self.assertEqual([log.position_after(revision) for revision in (8, 9)], [2, 3])
        log.trim(9)
        self.assertEqual(log.end, 3)
