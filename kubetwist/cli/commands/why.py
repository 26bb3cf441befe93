"""C{kubetwist why}: explain an authorization decision of a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import click
import orjson

from ...filters.authorization import WHY
from ..apicalls import call_server, kubeconfig_option
from ..command import CommandError
from ..flagcommand import help_text

#: Exit code if the request is denied.
DENIED = 1
_HELP = """
Explain whether a user may do something, and by which rule; or which rules nearly allow it.

VERB is a verb of RBAC such as get, list or create. RESOURCE is a plural, optionally with group and subresource: pods,
pods/log, deployments.apps; or a path such as /metrics. The exit code is 0 if the request is allowed, 1 if it is denied.

    kubetwist why list configmaps -n demo --user bob

The server must be kubetwist, and the user of the kubeconfig needs the right to create a SubjectAccessReview.
"""


def query_of(verb: str, resource: str, name: str, values: dict[str, str], groups: Sequence[str]) -> str:
    """
    Return the query of a question, escaped.

    @param verb: The verb of RBAC.
    @param resource: The resource, or a path that begins with a slash.
    @param name: The name of the object; C{""} for none.
    @param values: Further parameters by name; empty ones are omitted.
    @param groups: The groups of the user.
    @raise click.UsageError: A path has a name, or groups have no user.
    """
    if groups and not values.get("user"):
        raise click.UsageError("--group and --uid need --user")
    if values.get("uid") and not values.get("user"):
        raise click.UsageError("--group and --uid need --user")
    target = {"path": resource} if resource.startswith("/") else {"resource": resource}
    if "path" in target and (name or values.get("namespace")):
        raise click.UsageError("a path has neither a name nor a namespace")
    parameters = [("verb", verb), *target.items(), ("name", name), *values.items()]
    return urlencode([(key, value) for key, value in parameters if value] + [("group", group) for group in groups])


@click.command("why", help=help_text(_HELP))
@click.argument("verb")
@click.argument("resource")
@click.argument("name", default="")
@click.option(
    "-n", "--namespace", default="", help="The namespace. Without it, the request is about the whole cluster."
)
@click.option("--user", default="", help="The user. Without it, the user of the kubeconfig.")
@click.option("--group", "groups", multiple=True, help="A group of the user; can be repeated.")
@click.option("--uid", default="", help="The UID of the user.")
@click.option("--subresource", default="", help="The subresource; RESOURCE can also be pods/log.")
@click.option("--field-selector", default="", help="The field selector of a list.")
@click.option("--label-selector", default="", help="The label selector of a list.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="The format of the answer.")
@kubeconfig_option
def command(
    verb: str, resource: str, name: str, groups: Sequence[str], output: str, kubeconfig: str, **values: Any
) -> None:
    """
    Send the question to the server, and print the answer.

    The parameters are the arguments and options of the command.
    """
    parameters = {
        "namespace": values["namespace"],
        "user": values["user"],
        "uid": values["uid"],
        "subresource": values["subresource"],
        "fieldSelector": values["field_selector"],
        "labelSelector": values["label_selector"],
    }
    answer = call_server(kubeconfig, "GET", WHY, query=query_of(verb, resource, name, parameters, groups))
    if answer.get("kind") != "Why" or not isinstance(answer.get("allowed"), bool):
        raise CommandError("the server answered with another object than Why")
    if output == "json":
        click.echo(orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode())
    else:
        from ...server.endpoints.why import as_text

        click.echo(as_text(answer), nl=False)
    if not answer["allowed"]:
        raise click.exceptions.Exit(DENIED)
