"""C{kubetwist health}: check the server that uses a data directory, for the health checks of containers."""

from __future__ import annotations

import base64
import http.client
import ssl
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click

#: The entry of the server in its kubeconfig.
_CLUSTER: Final = "kubetwist"
#: Maximum number of bytes of a response that are read.
_MAX_BODY: Final = 1 << 20


class HealthError(Exception):
    """The server is not healthy, or cannot be asked; the text is the reason in one line."""


def check_health(data_dir: Path, path: str, timeout: float) -> str:
    """
    Send a request to a health path of the server, as the administrator if there is the certificate.

    @param data_dir: The data directory of the server, with C{admin.kubeconfig}.
    @param path: The path, such as C{/readyz}.
    @param timeout: Seconds for connecting, and for each read.
    @return: The text of the response.
    @raise HealthError: There is no server, or it does not answer 200.
    """
    address, authorities = _read_cluster(data_dir / "admin.kubeconfig")
    try:
        context = ssl.create_default_context(cadata=authorities)
        certificate, key = data_dir / "pki" / "admin.crt", data_dir / "pki" / "admin.key"
        if certificate.exists():
            context.load_cert_chain(certificate, key)
        connection = http.client.HTTPSConnection(address, context=context, timeout=timeout)
    except (OSError, ValueError, http.client.InvalidURL) as error:
        raise HealthError(f"cannot use the certificates in {data_dir}: {error}") from error
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        text = response.read(_MAX_BODY).decode("utf-8", "replace")
    except (http.client.InvalidURL, UnicodeError) as error:
        raise HealthError(f"cannot request {path!r}: {error}") from error
    except (OSError, http.client.HTTPException) as error:
        raise HealthError(f"no answer from https://{address}: {error or type(error).__name__}") from error
    finally:
        connection.close()
    if response.status != 200:
        failed = [line for line in text.splitlines() if line.startswith("[-]")] or text.splitlines()[:1]
        raise HealthError(f"{path} is answered {response.status}: {'; '.join(failed)}")
    return text.strip()


def _read_cluster(kubeconfig: Path) -> tuple[str, str]:
    """
    Return the host and port of the server, and its certificate authorities in PEM.

    @raise HealthError: The file cannot be used.
    """
    import yaml

    try:
        content: Any = yaml.safe_load(kubeconfig.read_bytes())
        (cluster,) = [entry["cluster"] for entry in content["clusters"] if entry["name"] == _CLUSTER]
        url = urlsplit(cluster["server"])
        authorities = base64.b64decode(cluster["certificate-authority-data"], validate=True).decode("ascii")
    except OSError as error:
        raise HealthError(f"cannot read {kubeconfig}: {error.strerror}") from error
    except (yaml.YAMLError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise HealthError(f"{kubeconfig} is not the kubeconfig of a server") from error
    if url.scheme != "https" or not url.netloc or not authorities.strip():
        raise HealthError(f"{kubeconfig} is not the kubeconfig of a server")
    return url.netloc, authorities


@click.command("health")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    default=Path("kubetwist-data"),
    show_default=True,
    help="The data directory of the server.",
)
@click.option("--path", default="/readyz", show_default=True, help="The health path: /readyz, /livez or /healthz.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    help="Seconds to wait for the answer.",
)
def command(data_dir: Path, path: str, timeout: float) -> None:
    """
    Check whether a server is healthy.

    The exit code is 0 if the health path of the server that uses the data directory is answered 200, and 1 otherwise.
    """
    try:
        click.echo(check_health(data_dir, path, timeout))
    except HealthError as error:
        # Twisted is imported only now: a health check runs often.
        from ..command import CommandError

        raise CommandError(str(error)) from error
