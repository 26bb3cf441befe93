"""Tests for the page that applies many objects, in a real browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubetwist.testing import SubprocessServer

from .browser import Page, make

MAPS = "/api/v1/namespaces/default/configmaps"
HOSTILE = "<img src=x onerror=window.hacked=1><script>window.hacked=1</script>"


@pytest.fixture(scope="module")
def server(page_server: SubprocessServer) -> SubprocessServer:
    """The server of the page."""
    return page_server


def config_map(name: str, **fields: Any) -> dict[str, Any]:
    """Return a ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **fields}


def as_yaml(*objects: Any) -> str:
    """Return documents of YAML."""
    return str(yaml.safe_dump_all(objects))


def states(page: Page) -> list[list[str]]:
    """Return the state and title of each object of the plan."""
    found: list[list[str]] = page.run(
        "return [...document.querySelectorAll('.entry')].map((one) => [one.dataset.state,"
        " one.querySelector('summary').children[1].textContent])"
    )
    return found


def show(page: Page) -> None:
    """Open the page without a draft."""
    page.run("for (const one of Object.keys(localStorage)) if (one.includes('draft')) localStorage.removeItem(one)")
    page.find(".side a[href='#/apply']").click()
    page.find("#plan")


def plan(page: Page, summary: str) -> None:
    """Plan, and wait for the summary."""
    page.find("#plan").click()
    page.reads(summary, "#plan-summary")


def drop(page: Page, files: dict[str, str]) -> None:
    """Drop files onto the page."""
    page.run(
        "const transfer = new DataTransfer();"
        "for (const [name, text] of Object.entries(arguments[0])) transfer.items.add(new File([text], name));"
        "const target = document.querySelector('yaml-editor').shadowRoot.querySelector('.cm-content');"
        "for (const type of ['dragover', 'drop']) target.dispatchEvent(new DragEvent(type,"
        " { dataTransfer: transfer, bubbles: true, composed: true, cancelable: true }));",
        files,
    )


def test_plan_and_apply(page: Page, server: SubprocessServer) -> None:
    """The plan shows what would be created, changed, and left unchanged; applying does it."""
    path = f"{MAPS}/%s?fieldManager=kubetwist-ui"
    for name in ("same", "changed"):
        obj = config_map(name, data={"a": "1"})
        assert server.request("PATCH", path % name, obj, content_type="application/apply-patch+yaml")[0] == 201
    show(page)
    listed = {"apiVersion": "v1", "kind": "List", "items": [config_map("changed", data={"a": "2"})]}
    page.edit(as_yaml(config_map("new", data={"a": "1"}), config_map("same", data={"a": "1"}), listed))
    plan(page, "1 create, 1 unchanged, 1 change")
    assert states(page) == [
        ["create", "ConfigMap new"],
        ["unchanged", "ConfigMap same"],
        ["change", "ConfigMap changed"],
    ]
    page.find(".entry[data-state=change] .state").click()
    page.reads('-   a: "1"', ".entry[data-state=change] .diff")
    page.reads('+   a: "2"', ".entry[data-state=change] .diff")
    page.picture("apply")
    assert server.request("GET", f"{MAPS}/new")[0] == 404
    page.find("#apply").click()
    page.reads("3 applied, 0 failed.", "#plan-summary")
    assert [state for state, _ in states(page)] == ["created", "unchanged", "changed"]
    assert server.request("GET", f"{MAPS}/new")[1]["data"] == {"a": "1"}
    assert server.request("GET", f"{MAPS}/changed")[1]["data"] == {"a": "2"}
    # Nothing is left to lose.
    page.open("#/list/-/configmaps")
    page.find(".grid")


def test_order(page: Page, server: SubprocessServer) -> None:
    """Namespaces and definitions come first, and objects that need them are applied after them."""
    names = {"plural": "kites", "kind": "Kite"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "kites.kite.example"},
        "spec": {"group": "kite.example", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    metadata = {"name": "red", "namespace": "sky"}
    kite = {"apiVersion": "kite.example/v1", "kind": "Kite", "metadata": metadata, "spec": {"size": 1}}
    inner = {**config_map("inner"), "metadata": {"name": "inner", "namespace": "sky"}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "sky"}}
    show(page)
    page.edit(as_yaml(kite, inner, namespace, definition))
    plan(page, "2 create, 2 after its namespace or kind")
    assert [title for _, title in states(page)] == [
        "Namespace sky",
        "CustomResourceDefinition kites.kite.example",
        "ConfigMap sky/inner",
        "Kite sky/red",
    ]
    page.find("#apply").click()
    page.reads("4 applied, 0 failed.", "#plan-summary")
    assert [state for state, _ in states(page)] == ["created"] * 4
    assert server.request("GET", "/apis/kite.example/v1/namespaces/sky/kites/red")[1]["spec"] == {"size": 1}


def test_errors(page: Page, server: SubprocessServer) -> None:
    """A bad document does not prevent the application of further ones, and texts stay for a correction."""
    show(page)
    good, bad = config_map("good"), config_map("Not.Valid!")
    unknown = {"apiVersion": "none.example/v1", "kind": "None", "metadata": {"name": "a"}}
    strict = config_map("strict", unknown=1)
    first = as_yaml(good, bad, unknown, strict)
    page.edit(f"{first}---\na: [\n---\n{as_yaml(good)}")
    plan(page, "error")
    assert sorted(states(page)) == sorted(
        [
            ["error", f"editor, line {first.count(chr(10)) + 2}"],
            ["create", "ConfigMap good"],
            ["error", "ConfigMap Not.Valid!"],
            ["error", "ConfigMap strict"],
            ["error", "ConfigMap good"],
            ["error", "None a"],
        ]
    )
    page.reads("The same object occurs twice.", "#plan-entries")
    page.reads("does not serve None in none.example/v1", "#plan-entries")
    page.reads("field not declared in schema", "#plan-entries")
    page.find("#apply").click()
    page.reads("1 applied, 5 failed.", "#plan-summary")
    assert server.request("GET", f"{MAPS}/good")[0] == 200
    assert "Not.Valid!" in page.edited()
    page.edit(as_yaml(good))
    page.reads("Plan again", "#plan-summary")
    assert page.all(".entry") == []
    plan(page, "1 unchanged")


def test_conflict(page: Page, server: SubprocessServer) -> None:
    """Fields of other managers are taken over only on request."""
    make(server, f"{MAPS}?fieldManager=the-other", config_map("contested", data={"a": "theirs"}))
    show(page)
    page.edit(as_yaml(config_map("contested", data={"a": "mine"})))
    plan(page, "1 error")
    page.reads('conflict with "the-other"', ".entry")
    assert page.find("#apply").get_attribute("disabled")
    page.find("#force-all").click()
    plan(page, "1 change")
    page.find("#apply").click()
    page.reads("1 applied, 0 failed.", "#plan-summary")
    assert server.request("GET", f"{MAPS}/contested")[1]["data"] == {"a": "mine"}


def test_files(page: Page, server: SubprocessServer, tmp_path: Path) -> None:
    """Files and folders of YAML and JSON can be dropped or chosen; other files are skipped."""
    show(page)
    drop(page, {"a.yaml": as_yaml(config_map("from-a")), "b.json": json.dumps(config_map("from-b")), "c.txt": "x: 1"})
    page.until(lambda: [page.content(f".files li:nth-child({number})") for number in (1, 2)] == ["a.yaml×", "b.json×"])
    page.reads("1 other files were skipped.", ".edit")
    assert page.edited() == ""
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "d.yml").write_text(as_yaml(config_map("from-d")))
    page.find("#folder-input").send_keys(str(folder))
    page.until(lambda: len(page.all(".files .chip")) == 3)
    page.find("[aria-label='Remove b.json']").click()
    plan(page, "2 create")
    assert states(page) == [["create", "ConfigMap from-a"], ["create", "ConfigMap from-d"]]
    page.reads("folder/inner/d.yml, line 1", "#plan-entries")
    page.open("#/list/-/configmaps")
    page.reads("Your changes are not saved.", "dialog")
    page.find("#leave").click()
    page.find(".grid")


def test_unreadable_file(page: Page) -> None:
    """A file that cannot be read is reported, and further ones can be added."""
    show(page)
    page.run(
        "window.readText = Blob.prototype.text; Blob.prototype.text = () => Promise.reject(new Error('no permission'))"
    )
    drop(page, {"a.yaml": as_yaml(config_map("unreadable"))})
    page.reads("no permission", ".edit")
    assert page.all(".files .chip") == []
    page.run("Blob.prototype.text = window.readText")
    drop(page, {"a.yaml": as_yaml(config_map("unreadable"))})
    page.find(".files .chip")
    assert "no permission" not in page.text(".edit")
    page.open("#/list/-/configmaps")
    page.find("#leave").click()
    page.find(".grid")


def test_hostile(page: Page, server: SubprocessServer) -> None:
    """Names, values and errors are shown as text."""
    show(page)
    drop(page, {f"{HOSTILE.replace('/', '')}.yaml": as_yaml(config_map("kept", data={"a": HOSTILE}))})
    page.edit(as_yaml(config_map(HOSTILE), {"apiVersion": HOSTILE, "kind": HOSTILE, "metadata": {"name": HOSTILE}}))
    plan(page, "1 create")
    for one in page.all(".entry:not([open]) .state"):
        one.click()
    page.reads(HOSTILE, ".entry .diff")
    assert page.all("main img, main script") == []
    assert page.run("return window.hacked") is None


def test_handed_over(page: Page) -> None:
    """Another view can leave objects for this one, once."""
    text = as_yaml(config_map("handed"))
    page.run("sessionStorage.setItem('kubetwist-apply', arguments[0])", text)
    show(page)
    assert page.edited() == text
    assert page.run("return sessionStorage.getItem('kubetwist-apply')") is None
