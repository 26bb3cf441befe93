// The views of one object: YAML, editor, events, owners and dependents; and its deletion.

import * as api from "./api.js";
import { h, problem, replace } from "./dom.js";
import { listAddress, objectAddress } from "./app.js";
import { yamlView } from "./yaml.js";
import { TableView } from "./table.js";

const METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";
const TABS = [["yaml", "YAML"], ["edit", "Edit"], ["events", "Events"], ["graph", "Owners and dependents"]];

export function objectView(resource, namespace, name, tab) {
  const path = api.pathOf(resource, namespace, name);
  const about = { resource, namespace, name, path };
  const body = h("div", { class: "main fills" });
  const may = resource.verbs;
  const tabs = TABS.filter(([id]) => id !== "edit" || may.includes("patch"));
  const element = h("div", { class: "main fills" },
    h("div", { class: "bar" },
      h("h1", null, name), h("span", { class: "kind" }, h("a", { href: listAddress(resource) }, resource.kind), namespace ? ` in ${namespace}` : ""), h("span", { class: "grow" }),
      may.includes("delete") ? h("button", { class: "button danger", type: "button", id: "delete", onclick: () => askToDelete(about) }, "Delete") : null),
    h("nav", { class: "tabs", "aria-label": "Views" }, tabs.map(([id, title]) =>
      h("a", { href: objectAddress(resource, namespace, name, id), "aria-current": id === tab ? "page" : null }, title))),
    body);
  const view = { element, title: name, close: null };
  const fail = (error) => replace(body, h("div", { class: "page" }, problem(error)));
  if (tab === "events") eventsOf(about, body, view);
  else if (tab === "graph") import("./graph.js").then((graph) => graph.drawGraph(about, body, view)).catch(fail);
  else if (tab === "edit") import("./edit.js").then((edit) => edit.editObject(about, body, view)).catch(fail);
  else yamlOf(about, body, view);
  return view;
}

export function newView(resource, namespace) {
  const body = h("div", { class: "main fills" });
  const element = h("div", { class: "main fills" }, h("div", { class: "bar" }, h("h1", null, `New ${resource.kind}`)), body);
  const view = { element, title: `New ${resource.kind}`, close: null };
  import("./edit.js").then((edit) => edit.createObject(resource, namespace, body, view)).catch((error) => replace(body, problem(error)));
  return view;
}

/** Show the YAML of an object, and read it again after each change. */
function yamlOf({ resource, namespace, name, path }, body, view) {
  const stop = new AbortController();
  view.close = () => stop.abort();
  const question = api.questionOf("get", resource, namespace, name);
  const draw = async () => {
    const text = await api.text(path, { accept: "application/yaml", signal: stop.signal, question });
    const before = body.querySelector(".yaml");
    const top = before ? before.scrollTop : 0, focused = before ? before.focused() : "", itself = before === document.activeElement;
    const shown = yamlView(text, before);
    replace(body, shown);
    shown.scrollTop = top;
    if (itself) shown.focus({ preventScroll: true });
    else if (focused) shown.focusOn(focused);
    return /^ {2}resourceVersion: "?(\d+)"?$/m.exec(text)?.[1] || "";
  };
  const follow = async () => {
    const version = await draw();
    const query = new URLSearchParams({ watch: "1", fieldSelector: `metadata.name=${name}`, resourceVersion: version });
    for await (const event of api.watch(`${api.pathOf(resource, namespace)}?${query}`, { accept: METADATA, signal: stop.signal })) {
      if (event.type === "MODIFIED") await draw();
      else if (event.type === "DELETED") { body.prepend(h("div", { class: "note" }, h("div", { class: "problem", role: "alert" }, "The object was deleted."))); return false; }
    }
    return true;
  };
  (async () => {
    while (!stop.signal.aborted) {
      try {
        if (!(await follow())) return;
      } catch (error) {
        if (stop.signal.aborted) return;
        if (!body.querySelector(".yaml")) { replace(body, h("div", { class: "page" }, problem(error))); return; }
        if ([403, 404, 405].includes(error.code)) return;
      }
      await new Promise((done) => setTimeout(done, 1000));
    }
  })();
}

/** Show the events about an object, followed by a watch. */
function eventsOf({ resource, namespace, name, path }, body, view) {
  const events = api.resourceOf("", "events");
  if (!events) { replace(body, h("div", { class: "page" }, "The server has no events.")); return; }
  let table = null, closed = false;
  view.close = () => { closed = true; if (table) table.close(); };
  api.json(path, { accept: METADATA }).then((object) => {
    if (closed) return;
    const selector = `involvedObject.uid=${object.metadata.uid}`;
    table = new TableView({ ...events }, namespace || "", (row, only) => {
      const address = objectAddress(events, row.namespace, row.name);
      if (!only) location.hash = address;
      return address;
    }, selector);
    replace(body, table.element);
  }, (error) => replace(body, h("div", { class: "page" }, problem(error))));
}

function askToDelete({ resource, namespace, name, path }) {
  const messages = h("div", { "aria-live": "polite" });
  const how = h("select", { id: "propagation" }, [["Background", "are deleted afterwards"], ["Foreground", "are deleted first"], ["Orphan", "are kept"]]
    .map(([one, means]) => h("option", { value: one }, `${means} (${one})`)));
  const dialog = h("dialog", { "aria-label": "Delete" });
  // The precondition protects a new object of the same name.
  let preconditions = {};
  api.json(path, { accept: METADATA }).then((object) => {
    preconditions = { uid: object.metadata.uid };
    really.disabled = false;
  }, (error) => replace(messages, problem(error)));
  const go = async () => {
    try {
      const question = api.questionOf("delete", resource, namespace, name);
      await api.ask(path, { method: "DELETE", question, body: JSON.stringify({ apiVersion: "v1", kind: "DeleteOptions", propagationPolicy: how.value, preconditions }) });
      dialog.close();
      location.hash = listAddress(resource);
    } catch (error) { replace(messages, problem(error)); }
  };
  const really = h("button", { class: "button danger", type: "button", id: "really", disabled: true, onclick: go }, "Delete");
  dialog.append(h("h1", null, `Delete this ${resource.kind}?`), h("p", null, h("code", null, name), namespace ? ` in ${namespace}` : ""),
    h("label", { class: "row", for: "propagation" }, "Dependents", how), messages,
    h("div", { class: "row" }, h("button", { class: "button", type: "button", onclick: () => dialog.close() }, "Cancel"),
      really));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
