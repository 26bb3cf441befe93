"""Tests for the documents of a whole server with an aggregated server, over HTTP."""

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
    """The documents about the resources of an aggregated server."""

    async def discovery(self) -> dict[str, Any]:
        """Return the groups of the aggregated document by name."""
        document = await self.done("GET", "/apis", Accept=AGGREGATED_TYPE)
        return {item["metadata"]["name"]: item["versions"] for item in document["items"]}

    async def is_(self, freshness: str) -> bool:
        """Return whether the version of the aggregated server is listed with this freshness."""
        versions = (await self.discovery()).get(GROUP)
        return bool(versions) and versions[0]["freshness"] == freshness

    def answer(self, content: Any, etag: str, content_type: str = "application/json") -> Any:
        """Return a handler that answers with a document, or with 304 for its ETag."""

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
        """
        The resources of an aggregated server are in the aggregated document; it was requested with the aggregator's
        identity.
        """
        await self.begin(answers={"/apis": self.answer(everything((GROUP, "v1")), '"a"', AGGREGATED_TYPE)})
        await self.until(lambda: self.is_("Current"))
        (version,) = (await self.discovery())[GROUP]
        self.assertEqual([one["resource"] for one in version["resources"]], ["lamps"])
        asked = self.backend.documents[0]
        self.assertEqual(asked.fields["x-remote-user"], ["system:kube-aggregator"])
        self.assertEqual(asked.client, "front-proxy-client")

    async def test_plain_discovery(self) -> None:
        """A server without an aggregated document is requested for the resource list of its version."""
        await self.begin()
        await self.until(lambda: self.is_("Current"))
        self.assertEqual(DISCOVERY["resources"], [])

    async def test_dead(self) -> None:
        """The version of a server that stops is stale; the rest of the document does not change."""
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
        """A server that does not respond delays neither clients nor the shutdown."""
        await self.begin(answers={"/apis": lambda request: NOT_DONE_YET})
        await self.until(lambda: self.backend.documents)
        self.assertIn("apps", await self.discovery())
        self.assertIn("/api/v1/pods", (await self.done("GET", "/openapi/v2"))["paths"])

    async def test_openapi_v2(self) -> None:
        """The paths of the aggregated server are in the v2 document."""
        await self.begin(answers={"/openapi/v2": self.answer(SWAGGER, '"b"')})

        async def merged() -> bool:
            document = await self.done("GET", "/openapi/v2")
            return PATH in document["paths"] and document["definitions"]["Lamp"]["description"] == "Light."

        await self.until(merged)

    async def test_openapi_v3(self) -> None:
        """The v3 document of the aggregated server is listed with its hash and served."""
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

    async def test_removed(self) -> None:
        """After its APIService is deleted, no document contains the group-version."""
        await self.begin()
        await self.until(lambda: self.is_("Current"))
        await self.done("DELETE", f"/apis/apiregistration.k8s.io/v1/apiservices/v1.{GROUP}")
        self.assertNotIn(GROUP, await self.discovery())
