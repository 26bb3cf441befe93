"""Tests for the editor of the page at /ui, in a real browser."""

from __future__ import annotations

from typing import Any

import pytest

from kubetwist.testing import SubprocessServer

from .browser import Page, make

MAPS = "/api/v1/namespaces/default/configmaps"
#: What would run if a text of a schema were taken for more than text.
HOSTILE = "<img src=x onerror=window.hacked=1><script>window.hacked=1</script>javascript:window.hacked=1"


@pytest.fixture(scope="module")
def server(page_server: SubprocessServer) -> SubprocessServer:
    """The server of the page."""
    return page_server


def go_to(page: Page, text: str) -> None:
    """Move the cursor behind the first occurrence of a text."""
    page.until(lambda: text in page.edited())
    page.run(
        "const area = document.querySelector('yaml-editor');"
        "area.goTo(area.value.indexOf(arguments[0]) + arguments[0].length)",
        text,
    )


def hover(page: Page, text: str) -> None:
    """Move the pointer onto a word."""
    from selenium.webdriver.common.action_chains import ActionChains

    word = page.until(
        lambda: page.run(
            "return [...document.querySelector('yaml-editor').shadowRoot.querySelectorAll('.cm-line span')]"
            ".find((one) => one.textContent === arguments[0])",
            text,
        )
    )
    chain = ActionChains(page.browser)
    # A movement inside of the word follows, since the first one may precede the listeners.
    chain.move_to_element(word).move_by_offset(2, 1).perform()


def choose(page: Page, *labels: str) -> None:
    """Wait for these completions, and click on the first one."""
    page.until(lambda: page.in_editor(".cm-completionLabel") == list(labels))
    page.run("return document.querySelector('yaml-editor').shadowRoot.querySelector('.cm-completionLabel')").click()


def drafts(page: Page, name: str) -> int:
    """Return the number of stored drafts of an object with this name."""
    return int(page.run("return Object.keys(localStorage).filter((one) => one.includes(arguments[0])).length", name))


def messages(page: Page) -> str:
    """Return the errors below the editor."""
    return page.text(".editor-messages")


def define(server: SubprocessServer, kind: str, spec: dict[str, Any]) -> str:
    """Define custom resources of a group; return the path of their OpenAPI document when it has them."""
    plural, group = f"{kind.lower()}s", f"{kind.lower()}.example"
    schema = {"type": "object", "required": ["spec"], "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "kind": kind}
    definition = {
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
    make(server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    return f"/openapi/v3/apis/{group}/v1"


def test_highlighting(page: Page) -> None:
    """Keys and comments have colors, lines have numbers, and blocks can be folded."""
    page.open("#/new/-/configmaps")
    page.edit("# comment\ndata:\n  a: 1\n  b: 2\n")
    page.until(lambda: {"# comment", "data"} <= set(page.in_editor(".cm-line span")))
    colors = page.run(
        "const root = document.querySelector('yaml-editor').shadowRoot;"
        "return [...root.querySelectorAll('.cm-line span')].map((one) => getComputedStyle(one).color)"
    )
    assert len(set(colors)) > 2
    assert {"1", "2", "3", "4"} <= set(page.in_editor(".cm-lineNumbers .cm-gutterElement"))
    page.run("document.querySelector('yaml-editor').shadowRoot.querySelector('[title^=Fold]').click()")
    page.until(lambda: page.in_editor(".cm-foldPlaceholder"))
    # The policy of the page forbids style elements.
    assert page.run("return document.querySelector('yaml-editor').shadowRoot.querySelectorAll('style').length") == 0


def test_keys(page: Page) -> None:
    """Tab indents, but after Escape it leaves; keys of the page have no effect in the editor."""
    page.open("#/new/-/configmaps")
    page.edit("a:\n")
    go_to(page, "a:\n")
    page.press("TAB", "g: 1/")
    page.until(lambda: page.edited() == "a:\n  g: 1/")
    assert page.run("return document.activeElement.localName") == "yaml-editor"
    page.press("ESCAPE", "ESCAPE", "TAB")
    page.until(lambda: page.run("return document.activeElement.localName") == "button")
    assert page.edited() == "a:\n  g: 1/"
    assert page.run("return location.hash") == "#/new/-/configmaps"


def test_completion(page: Page) -> None:
    """Fields and values at the cursor are completed, with their types; required fields come first."""
    page.open("#/new/apps/deployments")
    head = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  labels:\n    app: web\n"
    page.edit(f"{head}spec:\n  ")
    go_to(page, "\nspec:\n  ")
    page.press(" ", held="CONTROL")
    page.until(lambda: page.in_editor(".cm-completionLabel")[:2] == ["selector", "template"])
    assert page.in_editor(".cm-completionDetail")[0] == "LabelSelector, required"
    page.press("str")
    page.until(lambda: page.in_editor(".cm-completionLabel")[:1] == ["strategy"])
    page.until(lambda: "The deployment strategy to use" in "".join(page.in_editor(".cm-completionInfo")))
    page.picture("editor")
    choose(page, "strategy", "selector", "revisionHistoryLimit")
    page.until(lambda: page.edited().endswith("spec:\n  strategy:\n    "))
    page.press("ty")
    choose(page, "type")
    page.until(lambda: page.in_editor(".cm-completionLabel") == ["Recreate", "RollingUpdate"])
    page.press("Rec")
    choose(page, "Recreate")
    page.until(lambda: page.edited().endswith("  strategy:\n    type: Recreate"))
    page.press("ENTER", "BACKSPACE", "templ")
    page.until(lambda: page.in_editor(".cm-completionLabel") == ["template"])


def test_hover(page: Page) -> None:
    """The field under the pointer is described."""
    page.open("#/new/apps/deployments")
    page.edit("apiVersion: apps/v1\nkind: Deployment\nspec:\n  minReadySeconds: 1\n")
    hover(page, "minReadySeconds")
    page.until(lambda: "Minimum number of seconds" in "".join(page.in_editor(".cm-tooltip-hover .field")))


def test_errors_while_typing(page: Page) -> None:
    """Errors of the syntax and of the schema are shown on their lines."""
    page.open("#/new/apps/deployments")
    head = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: a\n"
    page.edit(f"{head}spec:\n  selector: {{}}\n  template: {{}}\n  replicas: many\n  pausd: true\n")
    page.until(lambda: messages(page) == 'Line 8 expected: integer\nLine 9 unknown field "pausd"; similar: "paused"')
    assert page.in_editor(".cm-lintRange-error") == ["many", "pausd"]
    page.find(".editor-messages button").click()
    page.press("END", "BACKSPACE", "BACKSPACE", "BACKSPACE", "BACKSPACE", "3")
    page.until(lambda: messages(page) == 'Line 9 unknown field "pausd"; similar: "paused"')
    page.write("pausd", "paused")
    page.until(lambda: messages(page) == "No errors found.")
    page.write("replicas: 3", "replicas: [")
    page.until(lambda: messages(page).startswith("Line 10 "))


def test_errors_of_the_server(page: Page) -> None:
    """Fields in the server's answer are shown on their lines."""
    page.open("#/new/-/pods")
    page.edit(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\nspec:\n  containers:\n  - name: a\n    image: a\n"
        "  - name: Not.Valid\n    image: b\n"
    )
    page.until(lambda: messages(page) == "No errors found.")
    page.find("#review").click()
    page.reads("spec.containers[1].name", ".problem")
    page.until(lambda: messages(page) == "Line 9 spec.containers[1].name")
    assert page.in_editor(".cm-lintRange-error") == ["Not.Valid"]
    page.write("Not.Valid", "valid")
    page.until(lambda: messages(page) == "No errors found.")


def test_templates(page: Page, server: SubprocessServer) -> None:
    """The server accepts every template."""
    kinds = page.run(
        "return [...document.querySelectorAll(\".side a[href^='#/list/']\")].map((one) => one.getAttribute('href'))"
    )
    seen = 0
    for address in kinds:
        page.run("document.querySelector('#review')?.remove()")
        page.open(address.replace("/list/", "/new/"))
        page.find("#review")
        count = page.run("return document.querySelector('#template')?.options.length ?? 0")
        for index in range(1, count):
            page.run(
                "const choice = document.querySelector('#template'); choice.selectedIndex = arguments[0];"
                "choice.dispatchEvent(new Event('change'))",
                index,
            )
            page.find("#review").click()
            page.until(lambda: page.all(".problem, #save"))
            assert page.all("#save"), (address, index, page.text(".problem"))
            seen += 1
    assert seen > 30


def test_skeleton(page: Page, server: SubprocessServer) -> None:
    """A new custom resource begins with its required fields."""
    size = {"type": "integer", "minimum": 2}
    color = {"type": "string", "enum": ["red", "green"]}
    spec = {"type": "object", "required": ["size", "color"], "properties": {"size": size, "color": color}}
    path = define(server, "Balloon", spec)
    page.until(lambda: "Balloon" in str(server.request("GET", path)[1]))
    page.until(lambda: page.all(".side a[href='#/list/balloon.example/balloons']"))
    page.open("#/new/balloon.example/balloons")
    page.until(lambda: page.edited().endswith("spec:\n  size: 2\n  color: red\n"))
    page.write("color: red", "color: blue")
    page.until(lambda: messages(page) == "Line 8 allowed values: red, green")


def test_hostile_schema(page: Page, server: SubprocessServer) -> None:
    """Descriptions and names in a schema are shown as text, and patterns that take long are not evaluated."""
    field = {"type": "string", "description": HOSTILE, "pattern": "^(a+)+$", "enum": [HOSTILE, "a" * 50 + "!"]}
    spec = {"type": "object", "properties": {"field": field, HOSTILE: {"type": "string"}}}
    path = define(server, "Trap", spec)
    page.until(lambda: "Trap" in str(server.request("GET", path)[1]))
    page.until(lambda: page.all(".side a[href='#/list/trap.example/traps']"))
    page.open("#/new/trap.example/traps")
    page.edit(f"apiVersion: trap.example/v1\nkind: Trap\nspec:\n  field: {'a' * 50}!\n  ")
    page.until(lambda: messages(page) == "No errors found.")
    go_to(page, "!\n  ")
    page.press(" ", held="CONTROL")
    choose(page, HOSTILE)
    page.until(lambda: page.edited().endswith(f'"{HOSTILE}": '))
    hover(page, "field")
    page.until(lambda: HOSTILE in "".join(page.in_editor(".cm-tooltip-hover .field p")))
    page.write("!", "?")
    page.until(lambda: HOSTILE in messages(page))
    assert page.in_editor("img, script, a") == []
    assert page.all(".editor-messages img, .editor-messages script") == []
    assert page.run("return window.hacked") is None


def test_large_text(page: Page) -> None:
    """A text of almost 1 MB can be edited, and is checked; a longer one is not checked."""
    page.open("#/new/-/configmaps")
    lines = "".join(f"  key-{number}: value {number}\n" for number in range(35_000))
    page.edit(f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: large\ndata:\n{lines}")
    assert 700_000 < len(page.edited()) < 1_000_000
    go_to(page, "\ndata:")
    page.press("ENTER", "typed: 5")
    page.until(lambda: messages(page) == "Line 6 expected: string; put the value in quotes")
    page.press("ENTER", "more: text")
    assert "data:\n  typed: 5\n  more: text\n" in page.edited()
    # Only the visible lines are elements.
    assert len(page.in_editor(".cm-line")) < 200
    page.edit(f"data:\n{lines}{lines}")
    page.reads("are not checked here", ".editor-messages")


def test_draft(page: Page, server: SubprocessServer) -> None:
    """A draft survives a reload, is offered with a notice if the object has changed, and is removed after saving."""
    make(server, MAPS, {"metadata": {"name": "drafted"}, "data": {"a": "1"}})
    address = "#/object/-/configmaps/default/drafted/edit"
    page.open(address)
    page.write("data:\n", "data:\n  c: draft\n")
    page.until(lambda: drafts(page, "/drafted"))
    patch = {"data": {"b": "2"}}
    server.request("PATCH", f"{MAPS}/drafted", patch, content_type="application/merge-patch+json")
    page.load()
    page.find("header.top")
    page.open(address)
    page.reads("A draft of ", ".draft")
    page.reads("The object has changed since.", ".draft")
    assert "c: draft" not in page.edited()
    page.find("#use-draft").click()
    page.until(lambda: "c: draft" in page.edited())
    page.find("#review").click()
    page.find("#save").click()
    page.reads("c: draft", ".yaml")
    assert drafts(page, "/drafted") == 0
    # A draft can also be discarded.
    page.open(address)
    page.write("c: draft", "c: other")
    page.until(lambda: drafts(page, "/drafted"))
    page.load()
    page.find("header.top")
    page.open(address)
    page.find("#discard-draft").click()
    page.until(lambda: page.text(".draft") == "")
    assert drafts(page, "/drafted") == 0


def test_no_draft_of_secrets(page: Page, server: SubprocessServer) -> None:
    """The storage of the browser never contains a Secret."""
    page.open("#/new/-/secrets")
    page.write("name: ", "name: hunter")
    page.open("#/list/-/configmaps")
    page.find("#leave")
    assert "hunter" not in page.run("return JSON.stringify(localStorage)")
    page.find("#leave").click()
    page.open("#/new/-/configmaps")
    page.write("kind: ConfigMap", "kind: Secret")
    page.write("name: ", "name: hunter")
    page.open("#/list/-/configmaps")
    page.find("#leave")
    page.run("dispatchEvent(new Event('pagehide'))")
    assert "hunter" not in page.run("return JSON.stringify(localStorage)")
    page.find("#leave").click()


def test_sign_out_removes_drafts(page: Page, server: SubprocessServer) -> None:
    """Drafts of a user are removed at sign-out."""
    page.open("#/new/-/configmaps")
    page.write("name: ", "name: draft-of-a-user")
    page.until(lambda: "draft-of-a-user" in page.run("return JSON.stringify(localStorage)"))
    page.sign_out()
    page.find("input[name=token]")
    page.until(lambda: "draft-of-a-user" not in page.run("return JSON.stringify(localStorage)"))
