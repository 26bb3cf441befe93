"""Tests for L{kubetwist.tracing.propagation}."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import binary, dictionaries, lists, sampled_from

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.tracing.propagation import (
    BAGGAGE,
    TRACEPARENT,
    TRACESTATE,
    RemoteSpanContext,
    extract_baggage,
    extract_span_context,
    traceparent,
)

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"


def parsed(parent: str, *states: str) -> RemoteSpanContext | None:
    """Return the parsed span context."""
    return extract_span_context({TRACEPARENT: [parent.encode()], TRACESTATE: [one.encode() for one in states]})


def state_of(*states: str) -> str:
    """Return the propagated C{tracestate}."""
    remote = parsed(PARENT, *states)
    assert remote is not None
    return remote.state.decode()


class ParentTests(SynchronousTestCase):
    """Tests for C{traceparent}."""

    def test_sampled(self) -> None:
        """The trace id, span id and sampling flag are parsed."""
        self.assertEqual(parsed(PARENT), RemoteSpanContext(int(TRACE, 16), int(SPAN, 16), True))
        self.assertEqual(parsed(f"00-{TRACE}-{SPAN}-00"), RemoteSpanContext(int(TRACE, 16), int(SPAN, 16), False))

    def test_other_flags(self) -> None:
        """Unknown flags are ignored."""
        for flags, sampled in (("02", False), ("03", True), ("ff", True)):
            remote = parsed(f"00-{TRACE}-{SPAN}-{flags}")
            assert remote is not None
            self.assertEqual(remote.sampled, sampled)

    def test_later_version(self) -> None:
        """A later version is parsed like version 00."""
        self.assertIsNotNone(parsed(f"cc-{TRACE}-{SPAN}-01"))
        self.assertIsNotNone(parsed(f"cc-{TRACE}-{SPAN}-01-what-the-future-has"))
        self.assertIsNone(parsed(f"cc-{TRACE}-{SPAN}-01.what"))

    def test_malformed(self) -> None:
        """A malformed field is ignored."""
        for parent in (
            "",
            f"ff-{TRACE}-{SPAN}-01",
            f"00-{TRACE}-{SPAN}-01-more",
            f"00-{TRACE.upper()}-{SPAN}-01",
            f"00-{'0' * 32}-{SPAN}-01",
            f"00-{TRACE}-{'0' * 16}-01",
            f"00-{TRACE[1:]}-{SPAN}-01",
            f"00-{TRACE}-{SPAN}-1",
            f"00-{TRACE}-{SPAN}",
            f"00_{TRACE}_{SPAN}_01",
            f"{PARENT}\n",
        ):
            self.assertIsNone(parsed(parent), parent)

    def test_twice(self) -> None:
        """A repeated field is ignored."""
        self.assertIsNone(extract_span_context({TRACEPARENT: [PARENT.encode(), PARENT.encode()]}))

    def test_none(self) -> None:
        """A request without the field has no remote span."""
        self.assertIsNone(extract_span_context({}))

    def test_written(self) -> None:
        """A formatted C{traceparent} is parsed to the same values."""
        for sampled in (True, False):
            remote = extract_span_context({TRACEPARENT: [traceparent(1, 2, sampled)]})
            self.assertEqual(remote, RemoteSpanContext(1, 2, sampled))

    @given(dictionaries(sampled_from([TRACEPARENT, TRACESTATE, BAGGAGE]), lists(binary(), min_size=1)))
    def test_anything(self, fields: dict[bytes, list[bytes]]) -> None:
        """Any field values are parsed without an exception."""
        remote = extract_span_context(fields)
        self.assertTrue(remote is None or len(remote.state) <= 512)
        self.assertLessEqual(len(extract_baggage(fields)), 8192)


class StateTests(SynchronousTestCase):
    """Tests for C{tracestate}."""

    def test_propagated(self) -> None:
        """Entries of all fields are propagated in their order."""
        self.assertEqual(state_of("a=1, b@c=2", "d=x y"), "a=1,b@c=2,d=x y")

    def test_malformed(self) -> None:
        """One malformed entry invalidates the state, but not the parent."""
        for state in ("a", "A=1", "a=", "a=1,a=2", "a=b=c", "a=\x01", "a=1,=2", "é=1"):
            self.assertEqual(state_of(state), "", state)

    def test_too_many(self) -> None:
        """A state with more than 32 entries is ignored."""
        entries = [f"k{number}=v" for number in range(33)]
        self.assertEqual(state_of(",".join(entries)), "")
        self.assertEqual(state_of(",".join(entries[:32])), ",".join(entries[:32]))

    def test_long(self) -> None:
        """Long entries are dropped first, then the last entries, until the state is short enough."""
        entries = ["a=1", f"b={'x' * 200}", *(f"c{number}={'y' * 100}" for number in range(5))]
        self.assertEqual(state_of(",".join(entries)), ",".join(["a=1", *entries[2:6]]))


class BaggageTests(SynchronousTestCase):
    """Tests for L{extract_baggage}."""

    def test_propagated(self) -> None:
        """Valid members are propagated unchanged."""
        fields = {BAGGAGE: [b"user=a%20b;p=1;q , n=", b"m=2"]}
        self.assertEqual(extract_baggage(fields), b"user=a%20b;p=1;q,n=,m=2")

    def test_malformed(self) -> None:
        """Malformed and too long baggage is dropped."""
        for one in (b"", b"a", b"a=b c", b"a b=c", b"a=1,", b'a="', b"a=" + b"x" * 8192, b"a=1," * 64 + b"a=1"):
            self.assertEqual(extract_baggage({BAGGAGE: [one]}), b"", one[:20])
        self.assertEqual(extract_baggage({}), b"")
