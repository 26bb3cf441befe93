"""Tests for the page with a client certificate in the browser, which needs no token."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import NoEncryption, load_pem_private_key
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509 import load_pem_x509_certificate

from kubetwist.testing import SubprocessServer

from .browser import Page, another_origin, start_browser

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def certified(page_server: SubprocessServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A browser with the administrator's certificate, which it sends to this server without a prompt."""
    certutil, pk12util = shutil.which("certutil"), shutil.which("pk12util")
    if not certutil or not pk12util:
        pytest.skip("certutil and pk12util are not on PATH (Debian: apt-get install libnss3-tools)")
    home = tmp_path_factory.mktemp("certified")
    database = home / ".pki" / "nssdb"
    database.mkdir(parents=True)
    pki = page_server.data_dir / "pki"
    key = load_pem_private_key((pki / "admin.key").read_bytes(), None)
    certificate = load_pem_x509_certificate((pki / "admin.crt").read_bytes())
    both = home / "admin.p12"
    both.write_bytes(serialize_key_and_certificates(b"admin", key, certificate, None, NoEncryption()))
    run([certutil, "-N", "-d", f"sql:{database}", "--empty-password"])
    run([pk12util, "-i", str(both), "-d", f"sql:{database}", "-W", ""])
    shown = {f"{page_server.url},*": {"setting": {"filters": [{}]}}}
    browser = start_browser(home, {"profile.content_settings.exceptions.auto_select_certificate": shown})
    yield browser
    browser.quit()


def run(command: list[str]) -> None:
    """Run a command that must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_certificate(certified: Any, page_server: SubprocessServer) -> None:
    """
    The user confirms the identity first, then has the permissions of the certificate without a cookie, and can sign
    out.
    """
    page = Page(certified, page_server.url)
    page.load()
    page.reads("Continue as kubernetes-admin")
    page.find("p button").click()
    page.reads("kubernetes-admin", ".who")
    assert certified.get_cookies() == []
    page.open("#/new/-/configmaps")
    page.write("name: ", "name: by-certificate")
    page.find("#review").click()
    page.find("#save").click()
    page.reads("name: by-certificate", ".yaml")
    assert page_server.request("GET", f"{MAPS}/by-certificate")[0] == 200
    certified.get(f"{page.url}/swagger-ui/?api=version")
    page.reads("/version/", "#swagger-ui")
    page.reads("kubernetes-admin", ".who")
    page.load()
    page.sign_out()
    page.reads("Continue as kubernetes-admin")
    page.load()
    page.reads("Continue as kubernetes-admin")


def test_token_before_certificate(certified: Any, page_server: SubprocessServer) -> None:
    """A user who signs in with a token has the identity of the token, regardless of the certificate."""
    page = Page(certified, page_server.url)
    page.sign_in(page_server.token)
    page.reads("kubetwist-test-admin", ".who")


def test_other_sites(certified: Any, page_server: SubprocessServer) -> None:
    """A page of another origin can make the browser send the certificate, but can neither read nor change anything."""
    page = Page(certified, page_server.url)
    body = json.dumps({"metadata": {"name": "forged-by-certificate"}})
    plain = {"Content-Type": "text/plain"}
    with another_origin() as other:
        certified.get(other)
        for options in (
            {"credentials": "include"},
            {"credentials": "include", "mode": "no-cors"},
            {"credentials": "include", "mode": "no-cors", "method": "POST", "body": body, "headers": plain},
            {"credentials": "include", "method": "DELETE"},
        ):
            answer = page.fetch(f"{page_server.url}{MAPS}", options)
            assert answer in (None, ["opaque", 0, ""]), (options, answer)
    assert page_server.request("GET", f"{MAPS}/forged-by-certificate")[0] == 404
    assert page_server.request("GET", f"{MAPS}/by-certificate")[0] == 200
