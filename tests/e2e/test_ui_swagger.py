"""Tests for Swagger UI at /swagger-ui, in a real browser."""

from __future__ import annotations

from typing import Any

from kubetwist.testing import SubprocessServer

from .browser import Page

MAPS = "/api/v1/namespaces/default/configmaps"
HOSTILE = (
    "<img src=x onerror=window.hacked=1><script>window.hacked=1</script>"
    " [link](javascript:window.hacked=1) ![picture](https://evil.example/x.png) <style>body{display:none}</style>"
)


def open_api(page: Page, name: str) -> None:
    """Open the document of a group-version."""
    page.browser.get(f"{page.url}/swagger-ui/?api={name}")
    page.until(lambda: page.all(".opblock"))


def enter(page: Page, selector: str, text: str) -> None:
    """Enter a text into a field, as a user does."""
    page.find(selector)
    page.run(
        "const field = document.querySelector(arguments[0]);"
        "Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), 'value').set.call(field, arguments[1]);"
        "field.dispatchEvent(new Event('input', { bubbles: true }));"
        "field.dispatchEvent(new FocusEvent('focusout', { bubbles: true }))",
        selector,
        text,
    )


def click(page: Page, selector: str) -> None:
    """Click on an element, regardless of its scroll position."""
    page.find(selector)
    page.run("document.querySelector(arguments[0]).click()", selector)


def test_try_it_out(page: Page, page_server: SubprocessServer) -> None:
    """A user who is signed in at /ui sees all operations, and can execute them."""
    page.find(".side a[href='/swagger-ui/']").click()
    page.reads("/api/v1/configmaps", "#swagger-ui")
    page.reads("kubetwist-test-admin", ".who")
    # Only visible operations are elements; further ones are found by their paths.
    enter(page, ".operation-filter-input", MAPS.replace("default", "{namespace}"))
    create = "#operations-core_v1-createCoreV1NamespacedConfigMap"
    click(page, f"{create} button")
    click(page, f"{create} .try-out__btn")
    enter(page, f"{create} tr[data-param-name=namespace] input", "default")
    enter(page, f"{create} textarea.body-param__text", '{"metadata": {"name": "tried"}, "data": {"a": "1"}}')
    click(page, f"{create} .execute")
    page.reads('"name": "tried"', f"{create} .live-responses-table")
    assert "-H 'Content-Type: application/json'" in page.content(f"{create} .curl-command")
    page.run("document.querySelector(arguments[0]).scrollIntoView(); scrollBy(0, -60)", f"{create} .btn-group")
    page.picture("swagger")
    assert page_server.request("GET", f"{MAPS}/tried")[1]["data"] == {"a": "1"}
    # The displayed curl command contains no secret of the session.
    key = page.run("return localStorage.getItem('kubetwist-key')")
    assert len(key) > 20 and key not in page.content("body")


def test_choose(page: Page) -> None:
    """One group-version is shown at a time and loaded when it is chosen, without requests to other hosts."""
    open_api(page, "apis/apps/v1")
    page.reads("/apis/apps/v1/namespaces/{namespace}/deployments", "#swagger-ui")
    page.run(
        "const choice = document.querySelector('#api'); choice.value = 'apis/batch/v1';"
        "choice.dispatchEvent(new Event('change'))"
    )
    page.reads("/apis/batch/v1/namespaces/{namespace}/cronjobs", "#swagger-ui")
    assert page.run("return location.search") == "?api=apis%2Fbatch%2Fv1"
    page.browser.back()
    page.reads("/apis/apps/v1/namespaces/{namespace}/deployments", "#swagger-ui")
    loaded = page.run("return performance.getEntriesByType('resource').map((one) => one.name)")
    assert len(loaded) > 5
    assert all(name.startswith((f"{page.url}/", "data:")) for name in loaded), loaded
    documents = {name.partition("?")[0].removeprefix(page.url) for name in loaded if "/openapi/" in name}
    assert documents == {"/openapi/v3", "/openapi/v3/apis/apps/v1", "/openapi/v3/apis/batch/v1"}


def test_signed_out(browser: Any, page_server: SubprocessServer) -> None:
    """A user who is not signed in gets a link to the sign-in."""
    page = Page(browser, page_server.url)
    browser.get(f"{page.url}/ui/")
    page.run("localStorage.clear()")
    browser.delete_all_cookies()
    browser.get(f"{page.url}/swagger-ui/")
    page.reads("Sign in", ".problem")
    assert page.find(".problem a").get_attribute("href") == f"{page.url}/ui/"


def test_hostile_descriptions(page: Page, page_server: SubprocessServer) -> None:
    """The descriptions in a definition are text: no HTML, no Markdown, no links, no scripts."""
    text = {"type": "string", "description": HOSTILE, "default": HOSTILE, "title": HOSTILE}
    spec = {"type": "object", "description": HOSTILE, "properties": {"text": text}}
    schema = {"type": "object", "description": HOSTILE, "properties": {"spec": spec}}
    schema["externalDocs"] = {"url": "javascript:window.hacked=1", "description": HOSTILE}
    column = {"name": HOSTILE, "type": "string", "jsonPath": ".spec.text", "description": HOSTILE}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "additionalPrinterColumns": [column],
    }
    names = {"plural": "traps", "kind": "Trap"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "traps.evil.example"},
        "spec": {"group": "evil.example", "scope": "Cluster", "names": names, "versions": [version]},
    }
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    code, created = page_server.request("POST", path, definition)
    assert code == 201, created
    page.until(lambda: page_server.request("GET", "/openapi/v3/apis/evil.example/v1")[0] == 200)
    open_api(page, "apis/evil.example/v1")
    click(page, "#operations-evilExample_v1-createEvilExampleV1Trap button")
    # All that unfolds is unfolded: schemas of requests and answers, and models.
    for _ in range(4):
        page.run(
            "for (const one of document.querySelectorAll("
            "'.model-box-control[aria-expanded=false], .models-control[aria-expanded=false],"
            " button[role=tab][data-name=model], [aria-expanded=false].model-box-control')) one.click()"
        )
    page.until(lambda: page.content("#swagger-ui").count("onerror=window.hacked=1") >= 3)
    assert "[link](javascript:" in page.content("#swagger-ui")
    assert page.run("return window.hacked") is None
    hostile = "main script, main style, main iframe, img[src='x'], img[src^='http'], a[href^='javascript' i]"
    assert page.all(hostile) == []
    loaded = page.run("return performance.getEntriesByType('resource').map((one) => one.name)")
    assert not any("evil.example/x.png" in name for name in loaded)
    # The page at /ui shows what columns are called, and more of it in a title.
    page.load()
    page.open("#/list/evil.example/traps")
    page.until(lambda: HOSTILE in page.content(".grid thead"))
    assert page.find(".grid th:last-child").get_attribute("title") == HOSTILE
    assert page.run("return window.hacked") is None
    assert page.all(hostile) == []


def test_policy_holds(page: Page) -> None:
    """The browser blocks strings that Swagger UI would parse as HTML."""
    open_api(page, "version")
    for attempt in (
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=window.hacked=1>')",
        "document.createElement('div').innerHTML = '<b>x</b>'",
        "setTimeout('window.hacked=1')",
    ):
        assert page.run(f"try {{ {attempt}; return false }} catch {{ return true }}"), attempt
    assert page.run("return window.hacked") is None
