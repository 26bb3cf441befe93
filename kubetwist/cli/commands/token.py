"""C{kubetwist token}: create tokens of service accounts and of users, and sign-in links of the web UI."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import click
import orjson

from ...api.go.durations import parse_duration
from ...api.jsontypes import JSONObject
from ...api.resource import UserInfo
from ..apicalls import call_server, kubeconfig_option
from ..command import CommandError
from ..tokenentries import add_entry, new_entry


@click.group("token")
def command() -> None:
    """Create tokens of service accounts and of users, and sign-in links of the web UI."""


def seconds_of(duration: str) -> int | None:
    """
    Return the whole seconds of a duration in the format of Go; L{None} for C{""}.

    @raise click.UsageError: It is invalid, or not positive.
    """
    if not duration:
        return None
    try:
        seconds = int(parse_duration(duration))
    except ValueError as error:
        raise click.UsageError(f"--duration: {error}") from None
    if seconds < 1:
        raise click.UsageError("--duration must be positive, such as 1h")
    return seconds


def token_request(audiences: Sequence[str], seconds: int | None) -> JSONObject:
    """
    Return a TokenRequest.

    @param audiences: The audiences; the default of the server if empty.
    @param seconds: The requested lifetime; L{None} for the default of the server.
    """
    spec: JSONObject = {}
    if audiences:
        spec["audiences"] = list(audiences)
    if seconds is not None:
        spec["expirationSeconds"] = seconds
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}


@command.command("create")
@click.argument("serviceaccount")
@click.option("-n", "--namespace", default="default", show_default=True, help="The namespace of the service account.")
@click.option("--duration", default="", help="The lifetime, such as 10m or 24h. Without it, the server decides.")
@click.option("--audience", "audiences", multiple=True, help="An audience of the token; can be repeated.")
@click.option(
    "-o", "--output", type=click.Choice(["token", "json"]), default="token", help="The token, or the response."
)
@kubeconfig_option
def create(
    serviceaccount: str, namespace: str, duration: str, audiences: Sequence[str], output: str, kubeconfig: str
) -> None:
    """
    Request a token of a service account (TokenRequest), and print it.

    The server may grant another lifetime than the requested one.
    """
    body = token_request(audiences, seconds_of(duration))
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/serviceaccounts/{quote(serviceaccount, safe='')}/token"
    answer = call_server(kubeconfig, "POST", path, body=body)
    if output == "json":
        click.echo(orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode())
        return
    status = answer.get("status")
    token = status.get("token") if isinstance(status, dict) else None
    if not isinstance(token, str) or not token:
        raise CommandError("the response of the server has no token")
    click.echo(token)


@command.command("user")
@click.argument("name")
@click.option("--group", "groups", multiple=True, help="A group of the user; can be repeated.")
@click.option("--uid", default="", help="The UID of the user. Without it, the one in the file, or a random one.")
@click.option("--file", metavar="FILE", default="", help="The file of --token-auth-file, to which the user is added.")
@click.option(
    "--key-file",
    metavar="FILE",
    default="",
    help="Sign the token with this key instead, for --plugin-config-file=UserTokens=FILE: for tests.",
)
def user(name: str, groups: Sequence[str], uid: str, file: str, key_file: str) -> None:
    """
    Create a token of a user.

    With --file, a random token is added to a token file, and printed; a running server reads the file again. Without
    it, the line for such a file is printed: token, name, UID and groups.
    """
    if file and key_file:
        raise click.UsageError("--file and --key-file are mutually exclusive")
    if key_file:
        click.echo(signed_token(Path(key_file), UserInfo(name, uid, tuple(groups))))
    elif file:
        click.echo(add_entry(Path(file), name, uid, groups))
    else:
        click.echo(new_entry(name, uid, groups)[1], nl=False)


@command.command("signin-link")
@kubeconfig_option
def signin_link(kubeconfig: str) -> None:
    """
    Print a link that signs in to the web UI.

    The link works once, within 15 minutes, for browsers on the machine of the server, and signs in as the user of the
    kubeconfig. The user must be in the group system:masters, as the one of admin.kubeconfig.
    """
    answer = call_server(kubeconfig, "POST", "/ui/sign-in-links")
    url = answer.get("url")
    if answer.get("kind") != "SignInLink" or not isinstance(url, str) or not url.isprintable():
        raise CommandError("the server answered with another object than SignInLink")
    click.echo(url)


def signed_token(path: Path, user: UserInfo) -> str:
    """
    Return a token of a user, signed with the key in a file.

    @raise CommandError: The file cannot be read, or the key is too short.
    """
    from ...authentication.usertokens import parse_key, sign_user

    try:
        return sign_user(parse_key(path.read_bytes()), user)
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise CommandError(f"{path}: {error}") from error
