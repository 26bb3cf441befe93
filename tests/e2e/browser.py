"""Headless Chromium for tests of the web page."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kubetwist.testing import SubprocessServer

CHROMIUM = os.environ.get("KUBETWIST_TEST_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = os.environ.get("KUBETWIST_TEST_CHROMEDRIVER") or shutil.which("chromedriver")
#: Where pictures for the documentation go; none are made without it.
PICTURES = os.environ.get("KUBETWIST_TEST_PICTURES")


def start_browser(home: Path | None = None, preferences: Mapping[str, Any] | None = None) -> Any:
    """
    Start a browser; skip the test if Chromium is not installed.

    @param home: The directory of its certificate store; by default the home directory.
    @param preferences: Further preferences of Chromium.
    """
    if not CHROMIUM or not DRIVER:
        pytest.skip("chromium and chromedriver are not on PATH (Debian: apt-get install chromium chromium-driver)")
    webdriver = pytest.importorskip("selenium.webdriver")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    # What a container lacks: a display, a GPU, a large /dev/shm; and the authority of the server's certificate.
    for argument in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--ignore-certificate-errors"):
        options.add_argument(argument)
    for argument in ("--window-size=1280,860", "--disable-extensions", "--no-first-run", "--disable-component-update"):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    if preferences:
        options.add_experimental_option("prefs", dict(preferences))
    environment = {**os.environ, **({"HOME": str(home)} if home else {})}
    browser = webdriver.Chrome(options=options, service=Service(DRIVER, env=environment))
    browser.set_script_timeout(30)
    return browser


class Elsewhere(BaseHTTPRequestHandler):
    """A page of another origin on the same host, so that its requests carry the cookie."""

    def do_GET(self) -> None:
        """Send the page."""
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>elsewhere</title>")

    def log_message(self, *arguments: Any) -> None:
        """Log nothing."""


@contextmanager
def another_origin() -> Iterator[str]:
    """Serve that page while the context is open; yield its URL."""
    other = ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{other.server_address[1]}/"
    finally:
        other.shutdown()
        other.server_close()


def make(server: SubprocessServer, path: str, obj: Any) -> Any:
    """Create an object."""
    code, created = server.request("POST", path, obj)
    assert code == 201, created
    return created


class Page:
    """The page, with the actions of a user."""

    def __init__(self, browser: Any, url: str) -> None:
        self.browser = browser
        self.url = url

    def run(self, script: str, *arguments: Any) -> Any:
        """Return the result of a script in the page."""
        return self.browser.execute_script(script, *arguments)

    def fetch(self, url: str, options: Mapping[str, Any]) -> Any:
        """Return the type, code and text of the response to a fetch in the page; L{None} if it fails."""
        script = """
            const [url, options, done] = arguments;
            const report = async (response) => done([response.type, response.status, await response.text()]);
            fetch(url, options).then(report, () => done(null));
        """
        return self.browser.execute_async_script(script, url, options)

    def find(self, selector: str) -> Any:
        """Return the first matching element; wait until it exists."""
        return self.until(lambda: self.all(selector))[0]

    def all(self, selector: str) -> list[Any]:
        """Return all matching elements."""
        found: list[Any] = self.browser.find_elements("css selector", selector)
        return found

    def text(self, selector: str = "body") -> str:
        """Return the visible text of the first element."""
        return str(self.run("return document.querySelector(arguments[0])?.innerText || ''", selector))

    def content(self, selector: str) -> str:
        """Return all text of the first element, visible or not."""
        return str(self.run("return document.querySelector(arguments[0])?.textContent || ''", selector))

    def until(self, condition: Callable[[], Any], seconds: float = 60) -> Any:
        """Return the result of a function as soon as it is true."""
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.support.ui import WebDriverWait

        wait = WebDriverWait(self.browser, seconds, 0.05, (StaleElementReferenceException,))
        return wait.until(lambda browser: condition(), f"not so after {seconds} s; the page says: {self.text()[:2000]}")

    def reads(self, text: str, selector: str = "body") -> None:
        """Wait until an element has the text."""
        self.until(lambda: text in self.text(selector))

    def open(self, address: str = "") -> None:
        """Open the view with this fragment of the address."""
        self.run("location.hash = arguments[0]", address)

    def load(self) -> None:
        """Reload the page."""
        self.browser.get("about:blank")
        self.browser.get(f"{self.url}/ui/")

    def sign_in(self, token: str) -> None:
        """Sign in from any view."""
        self.browser.get(f"{self.url}/ui/")
        self.run("localStorage.clear(); sessionStorage.clear()")
        self.browser.delete_all_cookies()
        self.load()
        self.find("input[name=token]").send_keys(f"{token}\n")
        self.find("header.top")
        self.until(lambda: self.all(".side a[href='#/list/-/configmaps']"))

    def go_on(self, token: str, user: str) -> None:
        """Reload the page as this user; sign in only if no earlier test has done it."""
        self.load()
        self.until(lambda: self.all("header.top, input[name=token]"))
        changed = self.run("const changed = sessionStorage.length; sessionStorage.clear(); return changed")
        if self.text(".who") != user:
            self.sign_in(token)
        elif changed:
            self.load()
        self.until(lambda: self.all(".side a[href='#/list/-/configmaps']"))

    def sign_out(self) -> None:
        """Sign out in the dialog of the user."""
        self.find(".who").click()
        self.find("#sign-out").click()

    def write(self, old: str, new: str) -> None:
        """Replace the first occurrence of a text in the editor."""
        self.until(lambda: old in self.edited())
        self.run(
            "const area = document.querySelector('yaml-editor');"
            "area.value = area.value.replace(arguments[0], () => arguments[1]);",
            old,
            new,
        )

    def edited(self) -> str:
        """Return the text in the editor."""
        return str(self.run("return document.querySelector('yaml-editor')?.value ?? ''"))

    def edit(self, text: str) -> None:
        """Replace the whole text in the editor."""
        self.find("yaml-editor")
        self.run("document.querySelector('yaml-editor').value = arguments[0]", text)

    def in_editor(self, selector: str) -> list[str]:
        """Return the texts of matching elements inside of the editor."""
        found: list[str] = self.run(
            "return [...document.querySelector('yaml-editor')?.shadowRoot.querySelectorAll(arguments[0]) ?? []]"
            ".map((one) => one.textContent)",
            selector,
        )
        return found

    def press(self, *keys: str, held: str = "") -> None:
        """Press keys, by Selenium's names or as text, while C{held} is held down."""
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys

        chain = ActionChains(self.browser)
        if held:
            chain.key_down(getattr(Keys, held))
        chain.send_keys(*(getattr(Keys, key, key) for key in keys))
        if held:
            chain.key_up(getattr(Keys, held))
        chain.perform()

    def rows(self) -> list[list[str]]:
        """Return the cells of the rows that are elements."""
        found: list[list[str]] = self.run(
            "return [...document.querySelectorAll('.grid tbody tr:not([aria-hidden])')]"
            ".map((row) => [...row.cells].filter((cell) => cell.className !== 'tick').map((cell) => cell.textContent))"
        )
        return found

    def picture(self, name: str) -> None:
        """Save a screenshot if pictures are requested."""
        if PICTURES:
            self.browser.save_screenshot(str(Path(PICTURES) / f"ui-{name}.png"))


def signed_in(browser: Any, server: Any) -> Page:
    """
    Return the page, signed in as the administrator.

    @param server: A server of L{kubetwist.testing}.
    """
    page = Page(browser, server.url)
    page.go_on(server.token, "kubetwist-test-admin")
    return page
