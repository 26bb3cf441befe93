"""Tests for L{kubetwist.audit.event} and L{kubetwist.audit.truncation}."""

from __future__ import annotations

import json

from attrs import evolve

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import UserInfo
from kubetwist.audit.event import Event, Payload, event_list, peer_ip, request_uri, shown_user_agent, source_ips
from tests.audit.events import ABOUT, event


class JSONTests(SynchronousTestCase):
    """Tests of the JSON and legacy encodings."""

    def test_all(self) -> None:
        """The JSON has all fields of audit.k8s.io/v1 in their order."""
        made = event(
            level=3,
            impersonated=UserInfo("bob"),
            constraint="impersonate:user-info",
            reference={"resource": "pods", "namespace": "ns", "name": "", "apiVersion": "v1"},
            status={"status": "Success", "code": 200},
            request=Payload(b'{"a": 1}'),
            response=Payload(b'{"kind":"PodList"}'),
            annotations={"b": "2", "a": "1"},
        )
        expected = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "RequestResponse",
            "auditID": "id",
            "stage": "ResponseComplete",
            "requestURI": "/api/v1/namespaces/ns/pods?limit=1",
            "verb": "list",
            "user": {"username": "jane", "uid": "7", "groups": ["a", "b"], "extra": {"scopes": ["x"]}},
            "impersonatedUser": {"username": "bob"},
            "authenticationMetadata": {"impersonationConstraint": "impersonate:user-info"},
            "sourceIPs": ["10.0.0.9"],
            "userAgent": "kubectl/v1",
            "objectRef": {"resource": "pods", "namespace": "ns", "apiVersion": "v1"},
            "responseStatus": {"metadata": {}, "status": "Success", "code": 200},
            "requestObject": {"a": 1},
            "responseObject": {"kind": "PodList"},
            "requestReceivedTimestamp": "2001-09-09T01:46:40.250000Z",
            "stageTimestamp": "2001-09-09T01:46:40.500000Z",
            "annotations": {"a": "1", "b": "2"},
        }
        self.assertEqual(json.dumps(json.loads(made.json())), json.dumps(expected))

    def test_no_user(self) -> None:
        """Without a user the event has an empty user."""
        made = json.loads(Event(evolve(ABOUT, user=None, user_agent=b"", peer=""), "ResponseStarted", 1.0).json())
        self.assertEqual(made["user"], {})
        self.assertEqual({"userAgent", "sourceIPs", "objectRef", "responseStatus", "annotations"} & set(made), set())

    def test_objects(self) -> None:
        """
        Objects are encoded on the line of the event, also if they contain line breaks or invalid UTF-8; invalid objects
        are omitted.
        """
        for data, yaml, reported in (
            (b'{\n "a": "\xc3\xa9"\n}\n', False, {"a": "é"}),
            (b'{"a":"\xff"}', False, {"a": "\ufffd"}),
            (b"a: 1\nb: [x]\n", True, {"a": 1, "b": ["x"]}),
            (b"a: [", True, None),
        ):
            line = event(level=2, request=Payload(data, yaml=yaml)).json()
            self.assertNotIn(b"\n", line)
            self.assertEqual(json.loads(line).get("requestObject"), reported)

    def test_managed_fields(self) -> None:
        """Managed fields are removed from objects, lists and rows of tables if the policy omits them."""
        managed = {"metadata": {"name": "x", "managedFields": [{}]}}
        for obj, clean in (
            (managed, {"metadata": {"name": "x"}}),
            ({"items": [managed, None]}, {"items": [{"metadata": {"name": "x"}}, None]}),
            ({"rows": [{"object": managed}]}, {"rows": [{"object": {"metadata": {"name": "x"}}}]}),
            ([1], [1]),
        ):
            payload = Payload(json.dumps(obj).encode(), omit_managed_fields=True)
            self.assertEqual(json.loads(event(level=3, response=payload).json())["responseObject"], clean)

    def test_list(self) -> None:
        """The items of an EventList have no kind and apiVersion."""
        made = json.loads(event_list([event().item(), event(stage="Panic").item()]))
        self.assertEqual((made["kind"], made["metadata"]), ("EventList", {}))
        self.assertEqual([item["stage"] for item in made["items"]], ["ResponseComplete", "Panic"])
        self.assertNotIn("kind", made["items"][0])

    def test_legacy(self) -> None:
        """The legacy format is a line of quoted fields."""
        self.assertEqual(
            event(status={"code": 200}, reference={"namespace": "ns"}).line(),
            '2001-09-09T01:46:40.25Z AUDIT: id="id" stage="ResponseComplete" ip="10.0.0.9" method="list" user="jane"'
            ' groups="\\"a\\",\\"b\\"" as="<self>" asgroups="<lookup>" user-agent="kubectl/v1" namespace="ns"'
            ' uri="/api/v1/namespaces/ns/pods?limit=1" response="200"',
        )
        anonymous = Event(evolve(ABOUT, user=None), "RequestReceived", 1.0, impersonated=UserInfo("bob", groups=("c",)))
        self.assertIn(' user="<none>" groups="<none>" as="bob" asgroups="\\"c\\"" ', anonymous.line())
        self.assertTrue(
            anonymous.line().endswith(
                'namespace="<none>" uri="/api/v1/namespaces/ns/pods?limit=1" response="<deferred>"'
            )
        )


class PartsTests(SynchronousTestCase):
    """Tests of single fields."""

    def test_source_ips(self) -> None:
        """
        Source IPs are the addresses of the proxy headers in order, then the peer unless it is the last of them; invalid
        addresses are skipped.
        """
        for forwarded, real, peer, reported in (
            (None, None, "1.2.3.4", ["1.2.3.4"]),
            (b"9.9.9.9, junk , 8.8.8.8", None, "1.2.3.4", ["9.9.9.9", "8.8.8.8", "1.2.3.4"]),
            (b"9.9.9.9,1.2.3.4", None, "1.2.3.4", ["9.9.9.9", "1.2.3.4"]),
            (b"9.9.9.9", b"9.9.9.9", "1.2.3.4", ["9.9.9.9", "1.2.3.4"]),
            (None, b"2001:db8::1", "1.2.3.4", ["2001:db8::1", "1.2.3.4"]),
            (b"::ffff:9.9.9.9", None, "", ["9.9.9.9"]),
            (b"x" * 100, b"", "", []),
        ):
            self.assertEqual(source_ips(forwarded, real, peer), reported)
        self.assertEqual(peer_ip("::ffff:10.1.2.3"), "10.1.2.3")

    def test_user_agent(self) -> None:
        """A long user agent is truncated."""
        self.assertEqual(shown_user_agent(b"x" * 1024), "x" * 1024)
        self.assertEqual(shown_user_agent(b"x" * 1025), "x" * 1024 + "...TRUNCATED")

    def test_tokens(self) -> None:
        """An access token in the URI is masked."""
        self.assertEqual(request_uri(b"/a?x=1&access_token=s3cret&y=2"), "/a?x=1&access_token=<masked>&y=2")
        self.assertEqual(request_uri(b"/a?x=access_token"), "/a?x=access_token")
