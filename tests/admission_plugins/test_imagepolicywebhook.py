"""Tests for L{ImagePolicyWebhook}, with a webhook behind a real connection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase, TestCase
from zope.interface.verify import verifyObject

from kubetwist.admission.chain import AdmissionChain
from kubetwist.admission_plugins.imagepolicywebhook import ImagePolicyWebhook, ReviewCache, WebhookTimings, read_status
from kubetwist.admission_plugins.pluginconfig import InvalidConfiguration
from kubetwist.api.errors import APIStatusError
from kubetwist.client.factory import ClientFactory
from kubetwist.interfaces import IValidatingAdmission
from kubetwist.testing.webhooks import HANG_UP, Call, Reply, WebhookServer
from tests.admission_plugins.fakes import Context, Write, every_container, pod, write
from tests.client.clientcase import turns

PREFIX = "imagepolicywebhook.image-policy.k8s.io/"


class WebhookTests(TestCase):
    """Tests of reviews and their results."""

    async def plugin(self, answer: Any, **policy: Any) -> tuple[ImagePolicyWebhook, WebhookServer]:
        """Return the plugin and its webhook."""
        server = WebhookServer(reactor, answer)
        await server.start()
        outgoing = ClientFactory(reactor, lambda *arguments: None)

        async def cleanup() -> None:
            await outgoing.close()
            await server.stop()
            await turns()

        self.addCleanup(lambda: Deferred.fromCoroutine(cleanup()))
        folder = Path(self.mktemp())
        folder.mkdir()
        path = str(server.kubeconfig(folder, "/images"))
        context = Context(outgoing=outgoing, reactor=reactor)
        policy = {"kubeConfigFile": path, "retryBackoff": 1, **policy}
        plugin = ImagePolicyWebhook.configured(context, {"imagePolicy": policy})
        verifyObject(IValidatingAdmission, plugin)
        return plugin, server

    async def error_text(self, plugin: ImagePolicyWebhook, request: Write) -> str:
        """Return the message of the rejection; C{""} if the pod is admitted."""
        try:
            await AdmissionChain([plugin], reactor).validate(request.attributes)
        except APIStatusError as error:
            self.assertEqual(error.code, 403)
            return error.message.partition("is forbidden: ")[2]
        return ""

    async def test_review(self) -> None:
        """The review has the images, the namespace and the forwarded annotations."""
        plugin, server = await self.plugin(lambda call: {**call.json(), "status": {"allowed": True}})
        obj = every_container()
        obj["metadata"]["annotations"] = {"x.image-policy.k8s.io/why": "because", "other": "x"}
        self.assertEqual(await self.error_text(plugin, write(obj)), "")
        (call,) = server.calls
        self.assertEqual((call.method, call.path), ("POST", "/images"))
        self.assertEqual(
            call.json(),
            {
                "kind": "ImageReview",
                "apiVersion": "imagepolicy.k8s.io/v1alpha1",
                "metadata": {},
                "spec": {
                    "containers": [{"image": "i"}, {"image": "i"}],
                    "annotations": {"x.image-policy.k8s.io/why": "because"},
                    "namespace": "ns",
                },
                "status": {"allowed": False},
            },
        )

    async def test_cve_2023_2727(self) -> None:
        """Images of ephemeral containers are reviewed when these are added."""
        plugin, server = await self.plugin(lambda call: {**call.json(), "status": {"allowed": False}})
        obj = pod(ephemeralContainers=[{"name": "e", "image": "evil"}])
        reason = await self.error_text(plugin, write(obj, "pods/ephemeralcontainers", "UPDATE", old=pod()))
        self.assertEqual(reason, "one or more images rejected by webhook backend")
        self.assertEqual(server.calls[0].json()["spec"]["containers"], [{"image": "evil"}])

    async def test_denied(self) -> None:
        """
        The reason is sent to the client and audit annotations are recorded; the result for the same pod is cached.
        """
        status = {"allowed": False, "reason": "old", "auditAnnotations": {"cve": "1"}}
        plugin, server = await self.plugin(lambda call: {**call.json(), "status": status})
        for _ in range(2):
            request = write(pod())
            reason = await self.error_text(plugin, request)
            self.assertEqual(reason, "image policy webhook backend denied one or more images: old")
            self.assertEqual(request.annotations, {f"{PREFIX}cve": "1"})
        self.assertEqual(len(server.calls), 1)
        self.assertEqual(await self.error_text(plugin, write(pod(), namespace="other")), reason)
        self.assertEqual(len(server.calls), 2)

    async def test_failed(self) -> None:
        """If the call fails the pod is rejected with the error, unless defaultAllow is true; then it is annotated."""
        answers = (
            Reply(400, b"so not"),
            Reply(200, b"nonsense"),
            {"kind": "Pod"},
            {"kind": "ImageReview", "status": {"allowed": "yes"}},
            {"kind": "ImageReview", "status": {"allowed": True, "auditAnnotations": {"a": 1}}},
        )
        for answer in answers:
            plugin, _ = await self.plugin(lambda call, answer=answer: answer)
            self.assertNotEqual(await self.error_text(plugin, write(pod())), "", answer)
        plugin, server = await self.plugin(lambda call: HANG_UP)
        self.assertIn("Post ", await self.error_text(plugin, write(pod())))
        plugin, server = await self.plugin(lambda call: Reply(500, b""), defaultAllow=True)
        request = write(pod())
        self.assertEqual(await self.error_text(plugin, request), "")
        self.assertEqual(request.annotations, {f"{PREFIX}failed-open": "true"})
        assert request.attributes.object is not None
        self.assertEqual(
            request.attributes.object["metadata"]["annotations"], {"alpha.image-policy.k8s.io/failed-open": "true"}
        )
        self.assertEqual(len(server.calls), 5)

    async def test_other_subresources(self) -> None:
        """Other subresources are not reviewed."""

        def answer(call: Call) -> Any:
            raise AssertionError("not asked for")

        plugin, server = await self.plugin(answer)
        self.assertEqual(await self.error_text(plugin, write(pod(), "pods/status", "UPDATE", old=pod())), "")
        self.assertEqual(server.calls, [])


class PureTests(SynchronousTestCase):
    """Tests of the cache, the configuration and the decoding of responses."""

    def test_cached(self) -> None:
        """Allowed reviews are cached longer than denied ones, and the number of entries is limited."""
        clock = Clock()
        reviews = ReviewCache(clock.seconds, WebhookTimings(allow_ttl=10, deny_ttl=5))
        reviews.add(b"yes", {"allowed": True})
        reviews.add(b"no", {"allowed": False})
        clock.advance(6)
        self.assertEqual(reviews.get(b"yes"), {"allowed": True})
        self.assertIsNone(reviews.get(b"no"))
        clock.advance(5)
        self.assertIsNone(reviews.get(b"yes"))
        for number in range(1025):
            reviews.add(b"%d" % number, {"allowed": True})
        self.assertIsNone(reviews.get(b"0"))
        self.assertIsNotNone(reviews.get(b"1"))

    def test_not_cached(self) -> None:
        """With a TTL of 0 nothing is cached."""
        reviews = ReviewCache(Clock().seconds, WebhookTimings(allow_ttl=0, deny_ttl=0))
        reviews.add(b"x", {"allowed": True})
        self.assertIsNone(reviews.get(b"x"))

    def test_configuration(self) -> None:
        """An invalid configuration stops the server."""
        for policy in (
            None,
            {},
            {"kubeConfigFile": "x", "allowTTL": 3600},
            {"kubeConfigFile": "x", "allowTTL": 1},
            {"kubeConfigFile": "x", "denyTTL": "1"},
            {"kubeConfigFile": "x", "defaultAllow": "yes"},
            {"kubeConfigFile": "x", "other": 1},
        ):
            with self.assertRaises(InvalidConfiguration):
                ImagePolicyWebhook.configured(Context(), {"imagePolicy": policy})

    def test_status(self) -> None:
        """A review without a status denies the pod."""
        self.assertEqual(read_status(b'{"kind": "ImageReview"}'), {})
        for body in (b"[]", b'{"kind": "ImageReview", "status": []}', b"", b'{"kind": "ImageReview", "status": 1}'):
            with self.assertRaises(ValueError):
                read_status(body)
