"""Tests of L{kubetwist.http.negotiation}."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.http.negotiation import (
    BUILT_IN,
    CUSTOM,
    CUSTOM_PATCH_TYPES,
    MAX_CLAUSES,
    Negotiator,
    NotAcceptable,
    body_media,
    check_router,
    error_media,
    negotiate_aggregated,
    negotiate_aggregated_with_beta,
    negotiate_document,
    negotiate_unrouted,
    parse_accept,
    patch_media,
    unrouted_patch,
    wants_pretty,
)

TABLE = b"application/json;as=Table;v=v1;g=meta.k8s.io"


ALL_THREE = "application/json, application/yaml, application/vnd.kubernetes.protobuf"


ACCEPTED = f"only the following media types are accepted: {ALL_THREE}"


STREAMS = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"


class ParseAcceptTests(SynchronousTestCase):
    """L{parse_accept}."""

    def order(self, header: str) -> list[str]:
        """Return the media types of a header by preference."""
        return [f"{clause.type}/{clause.subtype}" for clause in parse_accept(header)]

    def test_quality(self) -> None:
        """Clauses are sorted by weight, then by position."""
        self.assertEqual(self.order("a/b;q=0.2, c/d;q=0.9, e/f;q=0.9"), ["c/d", "e/f", "a/b"])

    def test_wildcards_last(self) -> None:
        """An exact type precedes a wildcard, whatever the weights."""
        self.assertEqual(self.order("*/*, a/*, a/b;q=0.1"), ["a/b", "a/*", "*/*"])

    def test_lone_star(self) -> None:
        """A single star accepts everything; other types without a subtype are ignored."""
        self.assertEqual(self.order("*, rubbish, a/b/c"), ["*/*"])

    def test_parameters(self) -> None:
        """Parameters are parsed in any order and with spaces; those without a value are dropped."""
        (clause,) = parse_accept("application/json; v=v1 ;as=Table;;g=meta.k8s.io;x")
        self.assertEqual(clause.params, {"v": "v1", "as": "Table", "g": "meta.k8s.io"})

    @settings(max_examples=60)
    @given(st.text(alphabet="ab/*;,=q0.1 -", max_size=40))
    def test_any_text(self, header: str) -> None:
        """Arbitrary text is parsed without an error."""
        for clause in parse_accept(header):
            self.assertNotIn("/", clause.type)
            self.assertTrue(clause.subtype)


class NegotiatorTests(SynchronousTestCase):
    """L{Negotiator} and the negotiators of endpoints."""

    def refused(self, negotiator: Negotiator, accept: bytes) -> str:
        """Return the message of the 406 for a header."""
        error = self.assertRaises(NotAcceptable, negotiator, accept)
        self.assertEqual((error.code, error.reason), (406, "NotAcceptable"))
        return error.message

    def test_no_header(self) -> None:
        """Without a header the response is JSON."""
        for accept in (None, b"", b"*/*"):
            self.assertEqual(BUILT_IN.object(accept).media, "json")

    def test_yaml(self) -> None:
        """YAML is selected if it is preferred."""
        negotiated = BUILT_IN.object(b"application/yaml")
        self.assertEqual((negotiated.media, negotiated.content_type), ("yaml", b"application/yaml"))
        self.assertEqual(BUILT_IN.object(b"application/yaml;q=0.2,application/json;q=0.9").media, "json")

    def test_zero_quality(self) -> None:
        """A weight of zero does not exclude a type, as in the reference."""
        self.assertEqual(BUILT_IN.object(b"application/json;q=0").media, "json")

    def test_browser(self) -> None:
        """The header of a browser selects JSON by its wildcard."""
        accept = b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
        self.assertEqual(BUILT_IN.object(accept).media, "json")

    def test_router_refuses(self) -> None:
        """The router does not support partial wildcards; its error lists the available types."""
        for accept in (b"text/html", b"application/*", b"rubbish;;q=what", b"application/cbor"):
            message = self.refused(BUILT_IN.object, accept)
            self.assertEqual(message, f"406: Not Acceptable\n\nAvailable representations: {ALL_THREE}")
        self.assertIn(f"{ALL_THREE}, {STREAMS}", self.refused(BUILT_IN.list, b"text/html"))
        error = self.assertRaises(NotAcceptable, check_router, b"application/yaml", ("application/json",))
        self.assertEqual(error.message, "406: Not Acceptable\n\nAvailable representations: application/json")

    def test_router_refuses_bodiless(self) -> None:
        """The router answers 415 to a POST without a body and with an unacceptable header."""
        error = self.assertRaises(NotAcceptable, BUILT_IN.object, b"text/html", bodiless=True)
        self.assertEqual((error.code, error.reason), (415, "UnsupportedMediaType"))

    def test_patch_without_body(self) -> None:
        """The router of releases before 1.34 has no route for a patch of an unsupported type without a body."""
        without, empty = unrouted_patch(None), unrouted_patch(b"0")
        self.assertEqual((without.code, without.reason), (415, "UnsupportedMediaType"))
        self.assertEqual((empty.code, empty.message), (406, "406: Not Acceptable\n\nAvailable representations: "))

    def test_unrouted_refuses(self) -> None:
        """Without a router the error has another text, and partial wildcards are supported."""
        message = self.refused(negotiate_unrouted, b"text/plain")
        self.assertEqual(message, f"only the following media types are accepted: {ALL_THREE}")
        self.assertEqual(negotiate_unrouted(b"application/*").media, "json")

    def test_cached_error(self) -> None:
        """A cached error is raised as a new exception."""
        first = self.assertRaises(NotAcceptable, BUILT_IN.object, b"image/png")
        second = self.assertRaises(NotAcceptable, BUILT_IN.object, b"image/png")
        self.assertIsNot(first, second)
        self.assertEqual(first.status(), second.status())

    def test_protobuf(self) -> None:
        """Among media types that are accepted equally, the one that the header names first is selected."""
        protobuf = b"application/vnd.kubernetes.protobuf"
        self.assertEqual(BUILT_IN.object(protobuf).content_type, protobuf)
        for accept, media in (
            (protobuf + b",application/json", "protobuf"),
            (b"application/json," + protobuf, "json"),
            (protobuf + b", */*", "protobuf"),
            (protobuf + b",application/json;q=0.9", "protobuf"),
            (protobuf + b";q=0.8,application/json;q=0.9", "json"),
            (protobuf + b",application/yaml", "protobuf"),
            (b"application/yaml," + protobuf, "yaml"),
        ):
            self.assertEqual(BUILT_IN.object(accept).media, media, accept)

    def test_protobuf_views(self) -> None:
        """A client that requests a view gets the media type that it names first."""
        partial = b";as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
        protobuf = b"application/vnd.kubernetes.protobuf" + partial
        negotiated_form = BUILT_IN.object(protobuf + b",application/json")
        self.assertEqual((negotiated_form.media, negotiated_form.transform), ("protobuf", "PartialObjectMetadata"))
        json = b"application/json" + partial
        for forms in (BUILT_IN, CUSTOM):
            for accept, media in (
                (protobuf + b"," + json + b",application/json", "protobuf"),
                (json + b"," + protobuf, "json"),
                (protobuf + b";q=0.9," + json, "json"),
            ):
                negotiated_form = forms.object(accept)
                self.assertEqual(
                    (negotiated_form.media, negotiated_form.transform), (media, "PartialObjectMetadata"), accept
                )

    def test_protobuf_streams(self) -> None:
        """The content type of a watch in protobuf has the stream parameter."""
        stream = b"application/vnd.kubernetes.protobuf;stream=watch"
        for accept in (stream, b"application/vnd.kubernetes.protobuf"):
            negotiated_form = BUILT_IN.watch(accept)
            self.assertEqual((negotiated_form.media, negotiated_form.content_type), ("protobuf", stream))
        self.assertEqual(BUILT_IN.watch(stream + b",application/json").media, "protobuf")

    def test_no_protobuf(self) -> None:
        """Endpoints of custom resources have no protobuf form and no router."""
        protobuf = b"application/vnd.kubernetes.protobuf"
        self.assertEqual(CUSTOM.object(protobuf + b",application/json;q=0.1").media, "json")
        for negotiate in (CUSTOM.object, CUSTOM.list, CUSTOM.watch):
            message = self.refused(negotiate, protobuf)
            self.assertEqual(message, ACCEPTED)
            self.assertEqual(self.refused(negotiate, b"text/html"), ACCEPTED)

    def test_views(self) -> None:
        """Objects are available as tables and as partial metadata, in two versions."""
        negotiated = BUILT_IN.object(TABLE)
        self.assertEqual(
            (negotiated.transform, negotiated.api_version, negotiated.content_type),
            ("Table", "meta.k8s.io/v1", b"application/json"),
        )
        partial = b"application/yaml;as=PartialObjectMetadataList;v=v1beta1;g=meta.k8s.io"
        self.assertEqual(BUILT_IN.list(partial).version, "v1beta1")

    def test_view_fallback(self) -> None:
        """An unknown view is skipped."""
        accept = b"application/json;as=Table;v=v2;g=meta.k8s.io,application/json"
        self.assertEqual(BUILT_IN.object(accept).transform, "")
        for only in (
            b"application/json;as=Table",
            b"application/json;as=Table;v=v1",
            b"application/json;as=Grid;v=v1;g=meta.k8s.io",
            b"application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io",
        ):
            self.assertIn(ALL_THREE, self.refused(BUILT_IN.object, only))

    def test_documents_have_no_views(self) -> None:
        """Discovery documents have no table form."""
        self.assertIn("only the following", self.refused(negotiate_document, TABLE))

    def test_watch(self) -> None:
        """A watch streams JSON, with or without the stream parameter."""
        self.assertEqual(BUILT_IN.watch(b"application/json;stream=watch").media, "json")
        self.assertEqual(BUILT_IN.watch(TABLE).transform, "Table")
        message = self.refused(BUILT_IN.watch, b"application/yaml")
        self.assertEqual(message, f"only the following media types are accepted: {STREAMS}")
        self.assertIn("only the following", self.refused(BUILT_IN.object, b"application/json;stream=other"))

    def test_aggregated(self) -> None:
        """Aggregated discovery is returned only on request; its beta version only in old releases."""
        accept = b"application/json;g=apidiscovery.k8s.io;v=%b;as=APIGroupDiscoveryList,application/json"
        negotiated = negotiate_aggregated(accept % b"v2")
        self.assertEqual(
            negotiated.content_type, b"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        )
        self.assertRaises(NotAcceptable, negotiate_aggregated, accept % b"v2beta1")
        self.assertEqual(negotiate_aggregated_with_beta(accept % b"v2beta1").version, "v2beta1")
        self.assertRaises(NotAcceptable, negotiate_aggregated, b"application/json")

    def test_cache_size(self) -> None:
        """The cache of headers is limited."""
        negotiator = Negotiator()
        for number in range(2000):
            negotiator(b"application/json;n=%d" % number)
        self.assertLess(len(negotiator._cache), 1000)

    def test_long_headers(self) -> None:
        """Long headers are not cached, and the number of evaluated clauses is limited."""
        negotiator = Negotiator()
        header = b",".join([b"application/json"] + [b"a/b;q=%d" % number for number in range(5000)])
        self.assertEqual(negotiator(header).media, "json")
        self.assertEqual(len(negotiator._cache), 0)
        self.assertEqual(len(parse_accept(header.decode())), MAX_CLAUSES)
        self.assertEqual([one.type for one in parse_accept("a/b,c/d")], ["a", "c"])

    def test_error_media(self) -> None:
        """An error is returned in YAML on request, and otherwise in JSON."""
        self.assertEqual(error_media(b"application/yaml").media, "yaml")
        fallback = error_media(b"text/html")
        self.assertEqual((fallback.media, fallback.pretty), ("json", True))


class PrettyTests(SynchronousTestCase):
    """L{wants_pretty}."""

    def test_query(self) -> None:
        """The query parameter takes precedence over the user agent."""
        plain = BUILT_IN.object(None)
        self.assertTrue(wants_pretty(plain, b"/api?limit=1&pretty=true", None))
        self.assertFalse(wants_pretty(plain, b"/api?pretty=perhaps", b"curl/8"))
        self.assertFalse(wants_pretty(plain, b"/api?notpretty=true", None))

    def test_user_agents(self) -> None:
        """Responses for curl and browsers are indented."""
        plain = BUILT_IN.object(None)
        self.assertTrue(wants_pretty(plain, b"/api", b"curl/8.1"))
        self.assertFalse(wants_pretty(plain, b"/api", b"kubectl/v1.32"))
        self.assertTrue(wants_pretty(BUILT_IN.object(b"application/json;pretty=1"), b"/api", None))


class BodyMediaTests(SynchronousTestCase):
    """L{body_media} and L{patch_media}."""

    def test_json(self) -> None:
        """JSON is recognized in any case, with any charset, and without a header."""
        for content_type in (
            None,
            b"",
            b"application/json",
            b"application/json; charset=utf-8",
            b"application/json;",
            b"APPLICATION/JSON",
            b'application/json; x="a;b"',
        ):
            self.assertEqual(body_media(content_type), "json")

    def test_yaml(self) -> None:
        """YAML has one media type."""
        self.assertEqual(body_media(b"application/yaml; charset=utf-8"), "yaml")

    def test_unknown(self) -> None:
        """An unknown media type is answered with a 415 that lists the accepted ones."""
        for content_type in (
            b"text/yaml",
            b"json",
            b"application/json,application/yaml",
            b"application/merge-patch+json",
            b"application/json; charset",
        ):
            error = self.assertRaises(APIStatusError, body_media, content_type)
            self.assertEqual(error.code, 415)
            self.assertTrue(error.message.endswith(f"accepted media types include: {ALL_THREE}"))

    def test_protobuf(self) -> None:
        """Protobuf is accepted."""
        for content_type in (b"application/vnd.kubernetes.protobuf", b"Application/vnd.kubernetes.Protobuf; a=b"):
            self.assertEqual(body_media(content_type), "protobuf")

    def test_patches(self) -> None:
        """The media type of a patch is compared exactly."""
        self.assertEqual(patch_media(b"application/merge-patch+json; charset=utf-8"), "application/merge-patch+json")
        for content_type in (None, b"", b"*/*", b"application/json", b"Application/Merge-Patch+JSON"):
            error = self.assertRaises(APIStatusError, patch_media, content_type)
            self.assertEqual((error.code, error.message, error.details), (415, "415: Unsupported Media Type", {}))

    def test_list_of_patch_types(self) -> None:
        """A list of patch types passes the router, but is refused by the handler."""
        error = self.assertRaises(
            APIStatusError, patch_media, b"application/merge-patch+json,application/json-patch+json"
        )
        self.assertIn("application/strategic-merge-patch+json", error.message)

    def test_custom_resources(self) -> None:
        """Custom resources do not support strategic merge patches; their error is without a router."""
        error = self.assertRaises(
            APIStatusError, patch_media, b"application/strategic-merge-patch+json", CUSTOM_PATCH_TYPES, routed=False
        )
        self.assertEqual(
            error.message,
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        )
