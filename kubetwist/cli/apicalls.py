"""Requests of commands to an API server, with the credentials of a kubeconfig."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click
import orjson

from ..api.jsontypes import JSONObject
from ..client.errors import CallError, InvalidRESTConfig
from ..client.httpclient import Response, WebhookClient
from ..client.kubeconfig import read_kubeconfig
from .command import CommandError, run_coroutine

#: The kubeconfig that a server in the current directory writes.
ADMIN_KUBECONFIG: Final = "kubetwist-data/admin.kubeconfig"
#: Maximum time of a request, in seconds.
TIMEOUT: Final = 30.0

kubeconfig_option = click.option(
    "--kubeconfig",
    metavar="FILE",
    default="",
    help="The kubeconfig with the server and the credentials. Without it, the first existing one of $KUBECONFIG, "
    f"./{ADMIN_KUBECONFIG} and ~/.kube/config.",
)


def find_kubeconfig(flag: str, environment: Mapping[str, str] = os.environ) -> Path:
    """
    Return the path of the kubeconfig to use.

    @param flag: The value of C{--kubeconfig}; C{""} without it.
    @param environment: The environment variables.
    @raise CommandError: There is none.
    """
    if flag:
        return Path(flag)
    if environment.get("KUBECONFIG"):
        candidates = [path for path in environment["KUBECONFIG"].split(os.pathsep) if path]
    else:
        candidates = [ADMIN_KUBECONFIG, os.path.join(environment.get("HOME", ""), ".kube/config")]
    for candidate in candidates:
        if os.path.exists(candidate):
            return Path(candidate)
    raise CommandError(f"no kubeconfig: --kubeconfig is not set, and none of {', '.join(candidates)} exists")


def call_server(
    kubeconfig: str, method: str, path: str, *, query: str = "", body: JSONObject | None = None
) -> JSONObject:
    """
    Send a request in the reactor, and return the JSON object of a response with a status code below 300.

    @param kubeconfig: The value of C{--kubeconfig}; C{""} without it.
    @param method: The HTTP method.
    @param path: The path, escaped; likewise C{query}.
    @param query: The query without a question mark.
    @param body: The object to send.
    @raise CommandError: There is no usable kubeconfig, no server, or the server refuses the request.
    """
    file = find_kubeconfig(kubeconfig)
    try:
        settings = read_kubeconfig(file)
    except InvalidRESTConfig as error:
        raise CommandError(str(error)) from error

    async def work(reactor: Any) -> Response:
        client = WebhookClient(reactor, settings)
        try:
            return await client.fetch(
                path,
                timeout=TIMEOUT,
                method=method,
                query=query,
                body=b"" if body is None else orjson.dumps(body),
                headers={"Accept": ["application/json"], **({"Content-Type": ["application/json"]} if body else {})},
            )
        finally:
            await client.close()

    try:
        response = run_coroutine(work)
    except (CallError, InvalidRESTConfig) as error:
        raise CommandError(str(error)) from error
    return parse_response(response)


def parse_response(response: Response) -> JSONObject:
    """
    Return the JSON object of a response.

    @raise CommandError: The status code is 300 or more, or the content is no JSON object.
    """
    try:
        content = orjson.loads(response.body)
    except orjson.JSONDecodeError:
        content = None
    if response.code >= 300:
        message = content.get("message") if isinstance(content, dict) else None
        text = message if isinstance(message, str) and message else f"the server answered {response.code}"
        raise CommandError(" ".join(text.split()))
    if not isinstance(content, dict):
        raise CommandError("the server answered with something else than a JSON object")
    return content
