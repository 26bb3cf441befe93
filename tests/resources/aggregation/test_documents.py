"""Tests for documents of a whole server that has another one behind it, over HTTP."""

from __future__ import annotations

import json
from typing import Any

from twisted.web.server import NOT_DONE_YET

from .aggregated import DISCOVERY, GROUP, HOME, AggregatedCase
from .discoverytools import everything
from .remotesfake import AGGREGATED_TYPE

V3 = f"/openapi/v3{HOME}"
PATH = f"{HOME}/lamps"
SWAGGER = {
    "swagger": "2.0",
    "paths": {PATH: {"get": {"responses": {"200": {"description": "OK", "schema": {"$ref": "#/definitions/Lamp"}}}}}},
    "definitions": {"Lamp": {"type": "object", "description": "Light."}},
}


class AggregatedDocumentsTests(AggregatedCase):
    """What clients are told of what another server serves."""

    async def discovery(self) -> dict[str, Any]:
        """The groups of the aggregated document, by their names."""
        document = await self.done("GET", "/apis", Accept=AGGREGATED_TYPE)
        return {item["metadata"]["name"]: item["versions"] for item in document["items"]}

    async def is_(self, freshness: str) -> bool:
        """Whether the other server's version is listed so."""
        versions = (await self.discovery()).get(GROUP)
        return bool(versions) and versions[0]["freshness"] == freshness

    def answer(self, content: Any, etag: str, content_type: str = "application/json") -> Any:
        """What gives a document, or says that it has not changed."""

        def answer(request: Any) -> Any:
            request.setHeader(b"etag", etag.encode())
            request.setHeader(b"content-type", content_type.encode())
            if request.getHeader("if-none-match") == etag:
                request.setResponseCode(304)
                request.finish()
            else:
                request.write(json.dumps(content).encode())
                request.finish()
            return NOT_DONE_YET

        return answer

    async def test_discovery(self) -> None:
        """What it serves is in the one document for everything, and it was asked as the aggregator, with its proof."""
        await self.begin(answers={"/apis": self.answer(everything((GROUP, "v1")), '"a"', AGGREGATED_TYPE)})
        await self.until(lambda: self.is_("Current"))
        (version,) = (await self.discovery())[GROUP]
        self.assertEqual([one["resource"] for one in version["resources"]], ["lamps"])
        asked = self.backend.documents[0]
        self.assertEqual(asked.fields["x-remote-user"], ["system:kube-aggregator"])
        self.assertEqual(asked.client, "front-proxy-client")

    async def test_plain_discovery(self) -> None:
        """A server without such a document is asked about its version."""
        await self.begin()
        await self.until(lambda: self.is_("Current"))
        self.assertEqual(DISCOVERY["resources"], [])

    async def test_dead(self) -> None:
        """A server that is gone leaves a stale version, and everything else is as it was."""
        await self.begin()
        await self.until(lambda: self.is_("Current"))
        await self.backend.kill()
        await self.done(
            "PATCH",
            f"/apis/apiregistration.k8s.io/v1/apiservices/v1.{GROUP}",
            {"spec": {"versionPriority": 11}},
            **{"Content-Type": "application/merge-patch+json"},
        )
        await self.until(lambda: self.is_("Stale"))
        self.assertEqual((await self.discovery())["apps"][0]["freshness"], "Current")

    async def test_slow(self) -> None:
        """A server that does not answer for its documents keeps nobody waiting, neither clients nor the stop."""
        await self.begin(answers={"/apis": lambda request: NOT_DONE_YET})
        await self.until(lambda: self.backend.documents)
        self.assertIn("apps", await self.discovery())
        self.assertIn("/api/v1/pods", (await self.done("GET", "/openapi/v2"))["paths"])

    async def test_openapi_v2(self) -> None:
        """Its paths are in the v2 document."""
        await self.begin(answers={"/openapi/v2": self.answer(SWAGGER, '"b"')})

        async def merged() -> bool:
            document = await self.done("GET", "/openapi/v2")
            return PATH in document["paths"] and document["definitions"]["Lamp"]["description"] == "Light."

        await self.until(merged)

    async def test_openapi_v3(self) -> None:
        """Its v3 document is listed with its hash, and answered."""
        name = HOME.removeprefix("/")
        index = {"paths": {name: {"serverRelativeURL": f"{V3}?hash=C0FFEE"}}}
        document = {"openapi": "3.0.0", "paths": {PATH: {}}}
        await self.begin(answers={"/openapi/v3": self.answer(index, '"i"'), V3: self.answer(document, '"C0FFEE"')})

        async def listed() -> bool:
            return name in (await self.done("GET", "/openapi/v3"))["paths"]

        await self.until(listed)
        for _ in range(2):
            code, body, fields = await self.ask("GET", f"{V3}?hash=C0FFEE")
            self.assertEqual((code, json.loads(body)["paths"], fields["etag"]), (200, {PATH: {}}, '"C0FFEE"'))
        self.assertEqual([one.path for one in self.backend.documents].count(V3), 1)
        code, _, fields = await self.ask("GET", f"{V3}?hash=OLD")
        self.assertEqual((code, fields["location"]), (301, f"{V3}?hash=C0FFEE"))

    async def test_gone(self) -> None:
        """When its APIService is deleted, nothing is told of it any more."""
        await self.begin()
        await self.until(lambda: self.is_("Current"))
        await self.done("DELETE", f"/apis/apiregistration.k8s.io/v1/apiservices/v1.{GROUP}")
        self.assertNotIn(GROUP, await self.discovery())
