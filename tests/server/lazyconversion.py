"""A conversion that L{tests.server.test_plugins} imports."""

from __future__ import annotations

from kubetwist.api.jsontypes import JSONObject


def convert(objects: list[JSONObject], api_version: str) -> list[JSONObject]:
    """Change the version only."""
    return [{**obj, "apiVersion": api_version} for obj in objects]
