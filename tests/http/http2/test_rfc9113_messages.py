"""Conformance with RFC 9113, section 8: requests and responses, malformed ones, and ways to smuggle a request."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubetwist.http.request import KubeRequest

from . import frames as h2
from .client import Client, Http2Case, get

CONTROL = (b"\r", b"\n", b"\0", b"\r\n", b"\r\nx-injected: 1", b"\n\n")


class MessageCase(Http2Case):
    """Base of tests of malformed requests."""

    def refuse(self, fields: h2.Fields, body: bytes | None = None) -> None:
        """Assert that a request is malformed, and that the connection continues."""
        self.served.clear()
        client = self.connect()
        client.request(fields, body)
        self.assert_malformed(client, 1)

    def serve(self, fields: h2.Fields, body: bytes | None = None) -> KubeRequest:
        """Assert that a request is served, and return it."""
        stream = self.connect().request(fields, body)
        self.assertEqual((stream.status, stream.ended), (200, True))
        return self.requests[-1]


class FramingTests(MessageCase):
    """Section 8.1: the frames of a message."""

    def test_body(self) -> None:
        """8.1: A body may come in any number of DATA frames, also empty ones."""
        client = self.connect()
        client.send(h2.headers(1, h2.POST, end_stream=False))
        for payload in (b"", b"so", b"me", b"", b" data"):
            client.send(h2.data(1, payload))
        self.assertEqual(self.served, [])
        client.send(h2.data(1, end_stream=True))
        self.assertEqual(bytes(client.stream(1).data), b"POST /a some data")

    def test_trailers(self) -> None:
        """8.1: Trailers end the body; they are not header fields of the request."""
        client = self.connect()
        client.send(h2.headers(1, h2.POST, end_stream=False), h2.data(1, b"body"))
        client.send(h2.headers(1, [(b"x-trailer", b"value")]))
        self.assertEqual(bytes(client.stream(1).data), b"POST /a body")
        self.assertNotIn(b"x-trailer", self.requests[0].fields)

    def test_second_head(self) -> None:
        """8.1: A second HEADERS frame without END_STREAM makes the request malformed."""
        client = self.connect()
        client.send(h2.headers(1, h2.POST, end_stream=False), h2.data(1, b"body"))
        client.send(h2.headers(1, [(b"x-trailer", b"value")], end_stream=False), h2.data(1, end_stream=True))
        self.assert_malformed(client, 1)

    def test_pseudo_fields_in_trailers(self) -> None:
        """8.1, 8.3: Trailers with pseudo fields make the request malformed."""
        for name, value in ((b":method", b"DELETE"), (b":path", b"/other"), (b":status", b"200"), (b":x", b"")):
            client = self.connect()
            client.send(h2.headers(1, h2.POST, end_stream=False), h2.headers(1, [(name, value)]))
            self.assert_malformed(client, 1)

    def test_malformed_trailers(self) -> None:
        """8.1: Trailers with malformed fields make the request malformed."""
        for name, value in ((b"Upper", b"x"), (b"x", b"a\r\nb"), (b"connection", b"close"), (b"", b"x")):
            client = self.connect()
            client.send(h2.headers(1, h2.POST, end_stream=False), h2.headers(1, [(name, value)]))
            self.assert_malformed(client, 1)

    def test_trailers_of_served_request(self) -> None:
        """8.1: Malformed trailers after the head of a request with a streamed body end the request."""
        client = self.connect()
        client.send(h2.headers(1, get(b"/stream", method=b"POST"), end_stream=False), h2.data(1, b"body"))
        (request,) = self.waiting
        client.send(h2.headers(1, [(b":path", b"/other")]))
        self.assertTrue(request.disconnected or request.finished)
        self.assert_stream_error(client, 1, h2.PROTOCOL_ERROR)

    def test_response_head(self) -> None:
        """8.1: The response to HEAD has the length of the body, and no DATA with content."""
        stream = self.connect().request(get(b"/a", method=b"HEAD"))
        self.assertEqual((stream.status, stream.field(b"content-length")), (200, b"8"))
        self.assertEqual((bytes(stream.data), stream.ended), (b"", True))

    def test_response_without_content(self) -> None:
        """8.1: The responses 204 and 304 have no content."""
        client = self.connect()
        for code in (204, 304):
            stream = client.request(get(b"/wait"))
            self.answer(-1, code, b"")
            self.assertEqual((stream.status, bytes(stream.data), stream.ended), (code, b"", True))
            self.assertIsNone(stream.field(b"content-length"))

    def test_early_response(self) -> None:
        """8.1: A response before the end of the body is complete, and the rest of the body is ignored."""
        client = self.connect()
        client.send(h2.headers(1, get(b"/stream", method=b"POST"), end_stream=False), h2.data(1, b"x"))
        self.answer(0, 403, b"no")
        stream = client.stream(1)
        self.assertEqual((stream.status, bytes(stream.data), stream.ended), (403, b"no", True))
        self.assertIn(stream.code, (None, h2.NO_ERROR, h2.CANCEL))
        client.send(h2.data(1, b"rest"), h2.data(1, end_stream=True))
        self.assert_usable(client)

    def test_many_early_responses(self) -> None:
        """The bodies of all streams may be under way when their requests are answered."""
        client = self.connect()
        numbers = [client.next_stream() for _ in range(client.server_settings[h2.MAX_CONCURRENT_STREAMS])]
        fields = get(b"/stream", method=b"POST")
        client.send(*(h2.headers(number, fields, end_stream=False) for number in numbers))
        for number in range(len(numbers)):
            self.answer(number, 429)
        client.send(*(h2.data(number, b"body", end_stream=True) for number in numbers))
        self.assertEqual({client.stream(number).status for number in numbers}, {429})
        self.assert_usable(client)

    def test_continue(self) -> None:
        """8.1: A client that expects 100 gets it before it sends the body."""
        client = self.connect()
        fields = [*h2.POST, (b"expect", b"100-continue"), (b"content-length", b"4")]
        client.send(h2.headers(1, fields, end_stream=False))
        self.assertEqual(client.stream(1).heads, [[(b":status", b"100")]])
        client.send(h2.data(1, b"body", end_stream=True))
        self.assertEqual(bytes(client.stream(1).data), b"POST /a body")


class ContentLengthTests(MessageCase):
    """Section 8.1.1: content-length."""

    def test_equal(self) -> None:
        """8.1.1: The length is the sum of the DATA frames without padding."""
        client = self.connect()
        client.send(h2.headers(1, [*h2.POST, (b"content-length", b"8")], end_stream=False))
        client.send(h2.data(1, b"some", padding=9), h2.data(1, b"data", end_stream=True))
        self.assertEqual(bytes(client.stream(1).data), b"POST /a somedata")

    def test_different(self) -> None:
        """8.1.1: A body shorter or longer than C{content-length} makes the request malformed."""
        for length in (b"0", b"1", b"3", b"5", b"1000"):
            for frames in ((b"body",), (b"bo", b"dy"), (b"body", b"")):
                client = self.connect()
                client.send(h2.headers(1, [*h2.POST, (b"content-length", length)], end_stream=False))
                for payload in frames:
                    client.send(h2.data(1, payload, end_stream=payload is frames[-1]))
                self.assert_malformed(client, 1)

    def test_too_large(self) -> None:
        """A body above the limit is answered 413 before it arrives, and the connection continues."""
        client = self.connect()
        client.send(h2.headers(1, [*h2.POST, (b"content-length", b"99999999")], end_stream=False))
        self.assertEqual((client.stream(1).status, client.stream(1).ended), (413, True))
        client.send(h2.data(1, b"body"))
        self.assert_usable(client)

    def test_no_body(self) -> None:
        """8.1.1: A request that ends with its head has no other length than 0."""
        self.refuse([*h2.POST, (b"content-length", b"4")])
        self.serve([*h2.POST, (b"content-length", b"0")])

    def test_shorter_with_trailers(self) -> None:
        """8.1.1: A body that trailers end has the announced length, too."""
        client = self.connect()
        client.send(h2.headers(1, [*h2.POST, (b"content-length", b"9")], end_stream=False), h2.data(1, b"body"))
        client.send(h2.headers(1, [(b"x", b"y")]))
        self.assert_malformed(client, 1)

    def test_no_number(self) -> None:
        """8.1.1: A length that is no number, or several lengths, make the request malformed."""
        for value in (b"", b"-4", b"+4", b"4,4", b"0x4", b"4 ", b"four", b"4.0", b"9" * 40, "\u0664".encode()):
            self.refuse([*h2.POST, (b"content-length", value)], b"body")
        self.refuse([*h2.POST, (b"content-length", b"4"), (b"content-length", b"5")], b"body")

    def test_streamed(self) -> None:
        """8.1.1: A streamed body of another length ends its request, and the handler notices."""
        for length, payload in ((b"3", b"body"), (b"9", b"body")):
            client = self.connect()
            fields = get(b"/stream", (b"content-length", length), method=b"POST")
            client.send(h2.headers(1, fields, end_stream=False), h2.data(1, payload, end_stream=True))
            self.assertTrue(all(request.disconnected for request in self.waiting))
            self.assert_stream_error(client, 1, h2.PROTOCOL_ERROR)


class FieldTests(MessageCase):
    """Section 8.2: header fields."""

    def test_upper_case(self) -> None:
        """8.2: Names with capitals make the request malformed."""
        for name in (b"X-Name", b"x-namE", b"TE", b"Content-Length", b"Host"):
            self.refuse([*h2.GET, (name, b"0")])

    def test_characters_of_names(self) -> None:
        """8.2.1: A name with a character that a token does not have makes the request malformed."""
        for bad in (b"", b" ", b"a b", b"a:", b"a:b", b"a\t", b"\x7f", b"\xc3\xa4", b"a\0", b"a/b", b'"', b"(", b"@"):
            self.refuse([*h2.GET, (bad, b"x")])
        for control in CONTROL:
            self.refuse([*h2.GET, (b"x" + control, b"y")])

    def test_token_characters(self) -> None:
        """8.2.1: All other characters of tokens are accepted in names."""
        name = b"!#$%&'*+-.^_`|~0189az"
        self.assertEqual(self.serve([*h2.GET, (name, b"value")]).header(name), b"value")

    def test_control_characters_in_values(self) -> None:
        """8.2.1: CR, LF and NUL in a value make the request malformed, at each place."""
        for control in CONTROL:
            for value in (control, b"a" + control, control + b"b", b"a" + control + b"b"):
                self.refuse([*h2.GET, (b"x-name", value)])

    def test_control_characters_in_pseudo_fields(self) -> None:
        """8.2.1: CR, LF and NUL in a pseudo field make the request malformed."""
        for number, (name, value) in enumerate(h2.GET):
            for control in (*CONTROL, b" HTTP/1.1\r\nHost: y\r\n\r\nGET /b"):
                changed = list(h2.GET)
                changed[number] = (name, value + control)
                self.refuse(changed)

    def test_spaces_around_values(self) -> None:
        """8.2.1: A value that begins or ends with a space or tab makes the request malformed, or loses it."""
        for value in (b" a", b"a ", b"\ta", b"a\t"):
            client = self.connect()
            stream = client.request([*h2.GET, (b"x-name", value)])
            if stream.status == 200:
                self.assertEqual(self.requests[-1].header(b"x-name"), b"a")
            else:
                self.served.clear()
                self.assert_malformed(client, 1)

    def test_other_bytes_in_values(self) -> None:
        """8.2.1: Bytes above 127 are passed on."""
        self.assertEqual(self.serve([*h2.GET, (b"x-name", b"\x80\xff")]).header(b"x-name"), b"\x80\xff")

    def test_separate_fields(self) -> None:
        """What filters change in the fields of a request does not change the next one with the same header block."""
        client = self.connect()
        for _ in range(3):
            client.request([*h2.GET, (b"authorization", b"Bearer token"), (b"x-a", b"one"), (b"x-a", b"two")])
            fields = self.requests[-1].fields
            self.assertEqual((fields[b"authorization"], fields[b"x-a"]), ([b"Bearer token"], [b"one", b"two"]))
            del fields[b"authorization"]
            fields[b"x-added"] = [b"four"]
        self.assertEqual(client.request().status, 200)
        self.assertNotIn(b"x-added", self.requests[-1].fields)

    def test_connection_fields(self) -> None:
        """8.2.2: Fields of a connection of HTTP/1.1 make the request malformed."""
        for name, value in (
            (b"connection", b"keep-alive"),
            (b"connection", b"close"),
            (b"connection", b"authorization"),
            (b"connection", b"upgrade"),
            (b"proxy-connection", b"keep-alive"),
            (b"keep-alive", b"timeout=5"),
            (b"transfer-encoding", b"chunked"),
            (b"transfer-encoding", b"identity"),
            (b"transfer-encoding", b""),
            (b"upgrade", b"websocket"),
            (b"upgrade", b"SPDY/3.1"),
            (b"upgrade", b"h2c"),
        ):
            self.refuse([*h2.GET, (name, value)])
            self.refuse([*h2.POST, (name, value)], b"0\r\n\r\nGET /b HTTP/1.1\r\n\r\n")

    def test_te(self) -> None:
        """8.2.2: C{te} may be C{trailers} only."""
        self.serve([*h2.GET, (b"te", b"trailers")])
        for value in (b"", b"gzip", b"trailers, deflate", b"chunked"):
            self.refuse([*h2.GET, (b"te", value)])


class PseudoFieldTests(MessageCase):
    """Section 8.3: pseudo fields."""

    def test_unknown(self) -> None:
        """8.3: Unknown pseudo fields, and pseudo fields of responses, make the request malformed."""
        for name in (b":unknown", b":status", b":", b":Method", b"::method"):
            self.refuse([*h2.GET, (name, b"200")])
            self.refuse([(name, b"200"), *h2.GET])

    def test_after_fields(self) -> None:
        """8.3: A pseudo field after another field makes the request malformed."""
        for number in range(4):
            fields = [*h2.GET[:number], *h2.GET[number + 1 :], (b"x-name", b"x"), h2.GET[number]]
            self.refuse(fields)

    def test_any_order(self) -> None:
        """8.3: The order of the pseudo fields has no meaning."""
        self.assertEqual(self.serve(tuple(reversed(h2.GET))).path, b"/a")

    def test_missing(self) -> None:
        """8.3.1: A request without method, scheme or path is malformed."""
        for number in range(3):
            self.refuse([*h2.GET[:number], *h2.GET[number + 1 :]])
        self.refuse([])
        self.refuse([(b"x-name", b"x")])

    def test_repeated(self) -> None:
        """8.3.1: A pseudo field that occurs twice makes the request malformed, also with the same value."""
        for name, value in h2.GET:
            self.refuse([*h2.GET, (name, value)])
            self.refuse([*h2.GET, (name, value + b"b")])

    def test_path(self) -> None:
        """8.3.1: An empty path, or one that does not begin with a slash, is malformed."""
        for path in (b"", b"a", b"?a=b", b"https://x/a", b"//\0", b"/a b", b"/a\tb", b"/\x7f", b"#a"):
            self.refuse(get(path))

    def test_path_of_options(self) -> None:
        """8.3.1: The path of OPTIONS may be an asterisk."""
        self.assertEqual(self.serve(get(b"*", method=b"OPTIONS")).path, b"*")

    def test_query(self) -> None:
        """8.3.1: The path includes the query."""
        request = self.serve(get(b"/a/b?c=d&e=%20"))
        self.assertEqual((request.path, request.uri), (b"/a/b", b"/a/b?c=d&e=%20"))

    def test_escapes(self) -> None:
        """8.3.1: Escapes are checked as in HTTP/1.1."""
        self.assertEqual(self.serve(get(b"/a%2Fb")).path, b"/a%2Fb")
        self.refuse(get(b"/a%zz"))

    def test_method(self) -> None:
        """8.3.1: A method is a token."""
        for method in (b"", b"GET ", b"G ET", b"GET\t", b"G/T", b"\xff", b"GET /b HTTP/1.1\r\n"):
            self.refuse(get(b"/a", method=method))
        self.assertEqual(self.serve(get(b"/a", method=b"PATCH")).method, b"PATCH")

    def test_authority(self) -> None:
        """8.3.1: C{:authority} takes the place of C{host}, and is checked as it is."""
        request = self.serve(h2.GET)
        self.assertEqual(request.fields[b"host"], [b"x"])
        self.assertEqual([name for name in request.fields if name.startswith(b":")], [])
        for authority in (b"a b", b"a\0b", b"user@x", b"a/b", b"a\r\nb"):
            self.refuse([*h2.GET[:3], (b":authority", authority)])

    def test_host(self) -> None:
        """8.3.1: A request with C{host} instead of C{:authority} is served."""
        request = self.serve([*h2.GET[:3], (b"host", b"y")])
        self.assertEqual(request.fields[b"host"], [b"y"])

    def test_authority_and_host(self) -> None:
        """8.3.1: If C{:authority} and C{host} differ, the request is malformed; equal ones are one value."""
        self.refuse([*h2.GET, (b"host", b"y")])
        self.refuse([*h2.GET, (b"host", b"x"), (b"host", b"x")])
        self.refuse([*h2.GET[:3], (b"host", b"x"), (b"host", b"y")])
        self.assertEqual(self.serve([*h2.GET, (b"host", b"x")]).fields[b"host"], [b"x"])

    def test_connect(self) -> None:
        """8.5: CONNECT is not served as another method, with or without a path."""
        for fields in (
            [(b":method", b"CONNECT"), (b":authority", b"x:443")],
            [(b":method", b"CONNECT"), (b":protocol", b"websocket"), *h2.GET[1:]],
        ):
            client = self.connect()
            stream = client.request(fields, end_stream=False)
            self.assertTrue(stream.code is not None or (stream.status or 0) >= 400)
            self.assertEqual(self.served, [])
            self.assert_usable(client)


class PropertyTests(MessageCase):
    """Any fields."""

    @given(
        name=st.one_of(st.binary(max_size=12), st.sampled_from([b"connection", b":path", b"x-a", b"te", b"host"])),
        value=st.binary(max_size=20),
        at=st.integers(0, 5),
    )
    def test_any_field(self, name: bytes, value: bytes, at: int) -> None:
        """A request with any further field is served with clean fields, or refused as malformed."""
        self.served.clear()
        client = Client(self.site)
        fields = list(h2.GET)
        fields.insert(at, (name, value))
        stream = client.request(fields)
        if stream.status != 200:
            self.assert_malformed(client, 1)
            return
        self.assertEqual([path for _, path in self.served], [b"/a"])
        for received, values in self.requests[-1].fields.items():
            self.assertRegex(received, rb"\A[!#$%&'*+.^_`|~0-9a-z-]+\Z")
            self.assertNotIn(received, (b"connection", b"transfer-encoding", b"upgrade", b"keep-alive"))
            for each in values:
                self.assertNotRegex(each, rb"[\r\n\0]")
        self.assertEqual(len(self.requests[-1].fields.get(b"host", ())), 1)

    @given(
        length=st.one_of(st.none(), st.integers(0, 12)),
        payloads=st.lists(st.binary(max_size=6), max_size=5),
        padding=st.one_of(st.none(), st.integers(0, 3)),
        trailers=st.booleans(),
    )
    def test_any_body(self, length: int | None, payloads: list[bytes], padding: int | None, trailers: bool) -> None:
        """A body is served whole if it has the announced length, and not at all otherwise."""
        self.served.clear()
        client = Client(self.site)
        fields = h2.POST if length is None else (*h2.POST, (b"content-length", b"%d" % length))
        body = b"".join(payloads)
        client.send(h2.headers(1, fields, end_stream=not payloads and not trailers))
        for number, payload in enumerate(payloads, 1):
            last = number == len(payloads) and not trailers
            client.send(h2.data(1, payload, end_stream=last, padding=padding))
        if trailers:
            client.send(h2.headers(1, [(b"x-trailer", b"value")]))
        if length in (None, len(body)):
            self.assertEqual(bytes(client.stream(1).data), b"POST /a " + body)
        else:
            self.assert_malformed(client, 1)
