"""
Tests of random clients of HTTP/2.

The number of frames of the long test is 20,000, or the value of C{KUBETWIST_FUZZ_FRAMES} in the environment; its seed
may be set with C{KUBETWIST_FUZZ_SEED}.
"""

from __future__ import annotations

import gc
import os

from hypothesis import given
from hypothesis import strategies as st

from . import frames as h2
from .client import Client, get
from .fuzzing import FuzzCase, Fuzzer
from .measures import held_bytes

FRAMES = int(os.environ.get("KUBETWIST_FUZZ_FRAMES", "20000"))
SEED = int(os.environ.get("KUBETWIST_FUZZ_SEED", "1"))

numbers = st.sampled_from([0, 1, 1, 3, 5, 7, 2, 99, h2.MAX_WINDOW])
requests = st.builds(
    lambda number, path, method, end_stream, end_headers: h2.headers(
        number, get(path, method=method), end_stream=end_stream, end_headers=end_headers
    ),
    st.sampled_from([1, 3, 5, 7, 9]),
    st.sampled_from([b"/a", b"/wait", b"/stream", b"/large", b"/endless", b"/pieces"]),
    st.sampled_from([b"GET", b"POST", b"HEAD"]),
    st.booleans(),
    st.sampled_from([True, True, True, False]),
)
any_frame = st.builds(
    h2.frame,
    st.integers(0, 11),
    st.integers(0, 255),
    numbers,
    st.one_of(st.binary(max_size=12), st.binary(max_size=300)),
)
legal_frames = st.one_of(
    st.builds(
        h2.data, numbers, st.binary(max_size=20), end_stream=st.booleans(), padding=st.none() | st.integers(0, 9)
    ),
    st.builds(h2.window_update, numbers, st.integers(0, h2.MAX_WINDOW)),
    st.builds(h2.reset, numbers),
    st.builds(h2.priority, numbers, numbers),
    st.builds(lambda values: h2.settings(*values), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 70_000)))),
    st.builds(h2.continuation, numbers, st.binary(max_size=20), end_headers=st.booleans()),
    st.builds(h2.goaway, numbers),
    st.builds(h2.ping),
)


class FuzzTests(FuzzCase):
    """Random clients."""

    @given(sent=st.lists(st.one_of(requests, legal_frames, any_frame, st.binary(max_size=30)), max_size=20))
    def test_any_frames(self, sent: list[bytes]) -> None:
        """Any sequence of frames is answered with legal frames, and leaves nothing behind."""
        self.waiting.clear()
        client = Client(self.site)
        for each in sent:
            client.send(each)
        for request in self.waiting:
            request.respond(200, b"done", b"text/plain")
        client.transport.hang_up()
        self.assertEqual(self.site.open_requests, set())
        self.assertEqual(self.site.connections.channels, set())
        self.assertEqual(self.site.connections.stalled, {})

    @given(
        sent=st.lists(st.one_of(requests, legal_frames), max_size=12), sizes=st.lists(st.integers(1, 60), min_size=1)
    )
    def test_segments(self, sent: list[bytes], sizes: list[int]) -> None:
        """The responses do not depend on the segments in which frames arrive."""
        results = []
        for segmented in (False, True):
            self.waiting.clear()
            client = Client(self.site)
            data, number = b"".join(sent), 0
            while data:
                size = sizes[number % len(sizes)] if segmented else len(data)
                client.send(data[:size])
                data = data[size:]
                number += 1
            results.append(
                (
                    client.goaway,
                    client.closed,
                    {
                        number: (one.status, bytes(one.data), one.ended, one.code)
                        for number, one in client.streams.items()
                    },
                )
            )
            client.transport.hang_up()
        self.assertEqual(results[0], results[1])

    def test_many_frames(self) -> None:
        """Many random frames cause no exception, and no growth of tables or memory."""
        fuzzer = Fuzzer(self, SEED)
        fuzzer.run(FRAMES // 4)
        shared = (self.site, self.site.connections)
        before = [self.size(one) for one in shared]
        fuzzer.run(FRAMES)
        self.assertGreater(len(fuzzer.sent), 10)
        self.assertGreater(fuzzer.ends.total(), FRAMES // 1000)
        for one, size in zip(shared, before, strict=True):
            self.assertLess(self.size(one), size + 32_768)

    def size(self, root: object) -> int:
        """Return the bytes that an object holds, without the test."""
        gc.collect()
        return held_bytes(root, self, self.clock)
