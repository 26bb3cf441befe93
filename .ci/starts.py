"""
Check the size of the installation. Start its C{twist kubeapi} and its C{kubetwist serve} in empty directories, request
/readyz, namespaces and the web page, stop them.

Uses the standard library only, as a user who has installed the wheel would.
"""

from __future__ import annotations

import base64
import os
import re
import signal
import ssl
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

#: The limit of an environment with the wheel and pip, in MB.
LIMIT = 150


def installed() -> float:
    """The size of the environment on disk, in MB."""
    files = (os.path.join(folder, name) for folder, _, names in os.walk(sys.prefix) for name in names)
    return sum(os.lstat(file).st_blocks for file in files) * 512 / 1e6


def credentials(kubeconfig: str, folder: str) -> tuple[str, ssl.SSLContext]:
    """The server's address and a TLS context with the admin's certificate, from the text of a kubeconfig."""
    url = re.search(r"server: (\S+)", kubeconfig)
    parts = {}
    for name in ("certificate-authority", "client-certificate", "client-key"):
        inline = re.search(rf"{name}-data: (\S+)", kubeconfig)
        named = re.search(rf"{name}: (\S+)", kubeconfig)
        assert inline or named, f"no {name} in the kubeconfig"
        if inline:
            parts[name] = os.path.join(folder, name)
            Path(parts[name]).write_bytes(base64.b64decode(inline.group(1)))
        elif named:
            parts[name] = named.group(1)
    assert url, "no server in the kubeconfig"
    context = ssl.create_default_context(cafile=parts["certificate-authority"])
    context.load_cert_chain(parts["client-certificate"], parts["client-key"])
    return url.group(1), context


def fetch(url: str, context: ssl.SSLContext) -> bytes:
    """The body of a 200."""
    with urllib.request.urlopen(url, context=context, timeout=10) as response:
        body: bytes = response.read()
        return body


def main() -> int:
    """Run the check."""
    size = installed()
    print(f"starts: the environment has {size:.0f} MB")
    if size > LIMIT:
        print(f"starts: more than {LIMIT} MB")
        return 1
    scripts = sysconfig.get_path("scripts")
    kubetwist = os.path.join(scripts, "kubetwist")
    print(subprocess.run([kubetwist, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip())
    page = os.path.join(sysconfig.get_path("data"), "share", "man", "man1", "kubetwist-serve.1")
    if not os.path.isfile(page):
        print(f"starts: no manual page {page}")
        return 1
    return starts(os.path.join(scripts, "twist"), "kubeapi") or starts(kubetwist, "serve")


def starts(program: str, command: str) -> int:
    """
    Start a server, send it requests, and stop it.

    @param program: The path of the program.
    @param command: Its subcommand.
    @return: The exit code of the check.
    """
    name = f"{os.path.basename(program)} {command}"
    subprocess.run([program, command, "--help"], check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen([program, command, "--secure-port", "0"], cwd=folder)
        try:
            kubeconfig = Path(folder, "kubetwist-data", "admin.kubeconfig")
            deadline = time.monotonic() + 30
            while True:
                try:
                    url, context = credentials(kubeconfig.read_text(), folder)
                    assert fetch(f"{url}/readyz", context) == b"ok"
                    break
                except (OSError, AssertionError) as error:
                    if server.poll() is not None or time.monotonic() > deadline:
                        print(f"starts: no server after all: {error!r}, exit code {server.poll()}")
                        return 1
                    time.sleep(0.05)
            assert b'"kind":"NamespaceList"' in fetch(f"{url}/api/v1/namespaces", context)
            page = fetch(f"{url}/ui/", context).decode()
            parts = re.findall(r'(?:href|src)="(/ui/[^"]+)"', page)
            assert len(parts) > 3 and all(fetch(url + part, context) for part in parts), page
            vendored = parts[0].rpartition("/")[0] + "/vendor/js-yaml/"
            assert all(fetch(url + vendored + name, context) for name in ("js-yaml.mjs", "LICENSE.txt"))
            server.send_signal(signal.SIGTERM)
            code = server.wait(timeout=30)
            print(f"starts: {name} came up at {url} and stopped with exit code {code}")
            return code
        finally:
            if server.poll() is None:
                server.kill()
                server.wait()


if __name__ == "__main__":
    sys.exit(main())
