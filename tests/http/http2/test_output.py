"""Tests of L{kubetwist.http.http2.output}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.http2.budgets import ControlBudget
from kubetwist.http.http2.frames import (
    DATA,
    END_STREAM,
    FLOW_CONTROL_ERROR,
    HEADERS,
    INITIAL_WINDOW,
    MAX_FRAME_SIZE,
    MAX_FRAMED_PARTS,
    MAX_WINDOW,
    Http2ConnectionError,
    Http2StreamError,
    data_frames,
)
from kubetwist.http.http2.output import MAX_WRITE, Backlog, Output


class Sender:
    """A stream that records what happens to it."""

    def __init__(self, stream_id: int, window: int = INITIAL_WINDOW, urgent: bool = False, reads: bool = False) -> None:
        self.stream_id = stream_id
        self.window = window
        self.urgent = urgent
        self.reads = reads
        self.backlog: Backlog | None = None
        self.calls: list[str] = []

    def pause_producer(self) -> None:
        """Record the call."""
        self.calls.append("pause")

    def resume_producer(self) -> None:
        """Record the call."""
        self.calls.append("resume")

    def end_sent(self) -> None:
        """Record the call."""
        self.calls.append("end")


def frames(data: bytes) -> list[tuple[int, int, int, bytes]]:
    """Return type, flags, stream and payload of the frames."""
    found = []
    while data:
        end = 9 + int.from_bytes(data[:3], "big")
        found.append((data[3], data[4], int.from_bytes(data[5:9], "big"), data[9:end]))
        data = data[end:]
    return found


class OutputTests(SynchronousTestCase):
    """L{Output}."""

    def setUp(self) -> None:
        """Create an output with an open window of the connection."""
        self.written: list[bytes] = []
        self.first: list[bytes] = []
        self.output = Output(self.written.append, self.first.append, lambda: 0.0, ControlBudget(lambda: 0.0))
        self.output.add_window(1 << 20)

    def sent(self) -> list[tuple[int, int]]:
        """Return the streams and sizes of the DATA frames since the last call."""
        data, self.written[:] = b"".join(self.written), []
        return [(stream, len(payload)) for kind, _, stream, payload in frames(data) if kind == DATA]

    def test_response(self) -> None:
        """A short response is one write; the first one announces that no table is used."""
        sender = Sender(1)
        self.output.send_response(sender, b"\x88", b"a")
        self.output.send_response(Sender(3), b"\x88", b"b")
        self.assertEqual(
            frames(b"".join(self.written)),
            [(HEADERS, 4, 1, b"\x20\x88"), (DATA, 1, 1, b"a"), (HEADERS, 4, 3, b"\x88"), (DATA, 1, 3, b"b")],
        )
        self.assertEqual(sender.calls, ["end"])

    def test_reads(self) -> None:
        """Responses of reads are written separately, since they need not follow watch events; watches remain first."""
        unordered: list[bytes] = []
        output = Output(
            self.written.append, self.first.append, lambda: 0.0, ControlBudget(lambda: 0.0), unordered.append
        )
        output.send_response(Sender(1), b"\x88", b"a")
        output.send_response(Sender(3, reads=True), b"\x88", b"b")
        output.send_data(Sender(5, reads=True), b"c", False)
        output.send_data(Sender(7, urgent=True, reads=True), b"d", False)
        streams = [[one[2] for one in frames(b"".join(data))] for data in (self.written, unordered, self.first)]
        self.assertEqual(streams, [[1, 1], [3, 3, 5], [7]])

    def test_no_body(self) -> None:
        """A response without body ends with its head."""
        sender = Sender(1, 0)
        self.output.send_response(sender, b"\x89", b"")
        self.assertEqual(frames(self.written[0]), [(HEADERS, 5, 1, b"\x20\x89")])
        self.assertEqual(sender.calls, ["end"])

    def test_closed_window(self) -> None:
        """Data wait for the window of their stream, while another stream sends."""
        waiting, other = Sender(1, 10), Sender(3)
        self.output.send_data(waiting, b"x" * 25, False)
        self.output.send_data(other, b"y", False)
        self.assertEqual(self.sent(), [(1, 10), (3, 1)])
        self.assertEqual((waiting.calls, other.calls, self.output.size), (["pause"], [], 15))
        self.output.add_stream_window(waiting, 10)
        self.assertEqual((self.sent(), waiting.calls), ([(1, 10)], ["pause"]))
        self.output.add_stream_window(waiting, 10)
        self.assertEqual((self.sent(), waiting.calls, self.output.size), ([(1, 5)], ["pause", "resume"], 0))

    def test_connection_window(self) -> None:
        """Streams that wait for the window of the connection take turns of one frame."""
        self.output.window = 0
        senders = [Sender(1, 1 << 20), Sender(3, 1 << 20), Sender(5, 1 << 20, urgent=True)]
        for sender in senders:
            self.output.send_data(sender, b"x" * 2 * MAX_FRAME_SIZE, True)
        self.output.add_window(1 << 20)
        self.assertEqual(self.sent(), [(1, MAX_FRAME_SIZE), (3, MAX_FRAME_SIZE)] * 2)
        self.assertEqual([(one[1], one[2]) for one in frames(b"".join(self.first))], [(0, 5), (END_STREAM, 5)])
        self.assertEqual([sender.calls for sender in senders], [["pause", "end"]] * 3)

    def test_blocked(self) -> None:
        """Nothing is sent while the transport is blocked, and a producer that fills it is paused."""
        sender = Sender(1, 1 << 20)

        def write(data: bytes) -> None:
            self.written.append(data)
            self.output.blocked = True

        self.output._write = write
        self.output.send_data(sender, b"x" * 100_000, False)
        self.assertEqual((sender.calls, len(self.written)), (["pause"], 1))
        self.output.send_data(sender, b"y", False)
        self.assertEqual(len(self.written), 1)
        self.output.unblock()
        self.assertEqual((sender.calls, len(self.written)), (["pause", "pause"], 2))
        self.output.unblock()
        self.assertEqual((sender.calls, len(self.written)), (["pause", "pause", "resume"], 2))

    def test_long(self) -> None:
        """Long data are sent in frames, with few writes."""
        sender = Sender(1, 1 << 20)
        self.output.send_data(sender, b"x" * (MAX_WRITE + 1), True)
        self.assertEqual(len(self.written), 2)
        self.assertEqual(self.sent(), [(1, MAX_FRAME_SIZE)] * (MAX_WRITE // MAX_FRAME_SIZE) + [(1, 1)])

    def test_wait_for_window(self) -> None:
        """A producer that begins while its stream cannot send is resumed when it can."""
        sender = Sender(1, 0)
        self.assertTrue(self.output.wait_for_window(sender))
        self.output.add_stream_window(sender, 1)
        self.assertEqual((sender.calls, self.written), (["resume"], []))
        self.assertFalse(self.output.wait_for_window(sender))

    def test_end_without_window(self) -> None:
        """The end of a response is sent while the window is closed, if nothing waits before it."""
        sender = Sender(1, 0)
        self.output.wait_for_window(sender)
        self.output.send_data(sender, b"", True)
        self.assertEqual(frames(b"".join(self.written)), [(DATA, END_STREAM, 1, b"")])
        self.assertEqual((sender.calls, sender.backlog), (["end"], None))

    def test_window_closes_in_the_queue(self) -> None:
        """A stream that waits for its turn sends nothing if its window is closed before the turn."""
        self.output.window = 0
        sender = Sender(1)
        self.output.send_data(sender, b"x" * 10, True)
        self.output.change_initial_window([sender], 0)
        self.output.add_window(100)
        self.assertEqual(self.written, [])
        self.output.add_stream_window(sender, 4)
        self.output.add_stream_window(sender, 100)
        self.assertEqual(self.sent(), [(1, 4), (1, 6)])

    def test_drop(self) -> None:
        """The data of a stream that was reset are dropped."""
        self.output.window = 0
        dropped, kept = Sender(1), Sender(3)
        for sender in (dropped, kept):
            self.output.send_data(sender, b"x" * 10, True)
        self.output.drop(dropped)
        self.assertEqual(self.output.size, 10)
        self.output.add_window(100)
        self.assertEqual(self.sent(), [(3, 10)])

    def test_too_large(self) -> None:
        """Windows beyond 2**31-1 are errors of the stream or the connection."""
        sender = Sender(1)
        error = self.assertRaises(Http2StreamError, self.output.add_stream_window, sender, MAX_WINDOW)
        self.assertEqual(error.code, FLOW_CONTROL_ERROR)
        self.assertRaises(Http2ConnectionError, self.output.add_window, MAX_WINDOW)
        self.assertRaises(Http2ConnectionError, self.output.change_initial_window, [Sender(3, 1 << 30)], MAX_WINDOW)

    def test_smaller_initial_window(self) -> None:
        """A smaller initial window can make the windows of open streams negative."""
        sender = Sender(1)
        self.output.send_data(sender, b"x" * 100, False)
        self.output.change_initial_window([sender], 50)
        self.assertEqual(sender.window, -50)
        self.output.send_data(sender, b"y" * 10, True)
        self.output.add_stream_window(sender, 55)
        self.assertEqual(self.sent(), [(1, 100), (1, 5)])


class AnyOrderTests(SynchronousTestCase):
    """Generated writes and windows."""

    @given(
        st.lists(
            st.tuples(
                st.sampled_from(("data", "stream", "connection", "block")), st.integers(0, 2), st.integers(1, 40_000)
            ),
            max_size=40,
        )
    )
    def test_all_sent(self, steps: list[tuple[str, int, int]]) -> None:
        """Windows are never exceeded, and all data arrive in order once the windows are open."""
        written: list[bytes] = []
        output = Output(written.append, written.append, lambda: 0.0, ControlBudget(lambda: 0.0))
        senders = [Sender(1), Sender(3), Sender(5, urgent=True)]
        expected = [b"", b"", b""]
        room, rooms = INITIAL_WINDOW, [INITIAL_WINDOW] * 3
        for number, (step, index, size) in enumerate(steps):
            if step == "data":
                data = bytes((number,)) * size
                expected[index] += data
                output.send_data(senders[index], data, False)
            elif step == "stream":
                rooms[index] += size
                output.add_stream_window(senders[index], size)
            elif step == "connection":
                room += size
                output.add_window(size)
            elif output.blocked:
                output.unblock()
            else:
                output.blocked = True
            got = [
                b"".join(one[3] for one in frames(b"".join(written)) if one[2] == sender.stream_id)
                for sender in senders
            ]
            assert sum(map(len, got)) <= room and all(len(one) <= limit for one, limit in zip(got, rooms, strict=True))
        output.unblock()
        output.add_window(10_000_000)
        for sender in senders:
            output.add_stream_window(sender, 10_000_000)
        got = [
            b"".join(one[3] for one in frames(b"".join(written)) if one[2] == sender.stream_id) for sender in senders
        ]
        assert got == expected and output.size == 0


class DataFramesTests(SynchronousTestCase):
    """L{data_frames}."""

    @given(st.lists(st.integers(0, 40_000), max_size=MAX_FRAMED_PARTS + 2), st.booleans())
    def test_any_parts(self, sizes: list[int], ends: bool) -> None:
        """Parts of any sizes are divided into the fewest frames, of which only the last one ends the stream."""
        parts: list[bytes | memoryview] = [bytes((65 + at,)) * size for at, size in enumerate(sizes)]
        parts[::3] = map(memoryview, parts[::3])
        found = frames(data_frames(7, parts, sum(sizes), ends))
        self.assertEqual(b"".join(one[3] for one in found), b"".join(parts))
        self.assertEqual([one[:3] for one in found], [(DATA, 0, 7)] * (len(found) - 1) + [(DATA, int(ends), 7)])
        self.assertEqual([len(one[3]) for one in found[:-1]], [MAX_FRAME_SIZE] * (len(found) - 1))
        self.assertLessEqual(len(found[-1][3]), MAX_FRAME_SIZE)
