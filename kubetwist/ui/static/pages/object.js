// The views of one object: YAML, editor, events, owners and dependents; and its deletion.

import { TableView } from "../components/table.js";
import { YAMLView } from "../components/yamlview.js";
import * as api from "../core/api.js";
import { button, frame, h, problem, replace } from "../core/dom.js";
import { listAddress, objectAddress } from "../lib/addresses.js";
import { apiVersionOf, pathOf, questionOf } from "../lib/resources.js";
import { texts } from "../lib/texts.js";

/** @typedef {import("../lib/types.js").Resource} Resource */
/** @typedef {import("../lib/types.js").Target} Target */
/** @typedef {import("../lib/types.js").View} View */

const METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";

/** @typedef {(target: Target, body: HTMLElement, view: View, actions: HTMLElement) => void | Promise<void>} Tab Shows the tab in the body. */

/**
 * The tabs by the last part of the address; with `verb` for resources with this verb, with `pods` for kinds with pods.
 *
 * @type {Record<string, { title: string, show: Tab, verb?: string, pods?: { kinds: string[], verbs: string[], subresource: string } }>}
 */
const TABS = {
  overview: { title: texts.tabs.overview, show: async (...to) => (await import("./details.js")).detailsTab(...to) },
  yaml: { title: texts.tabs.yaml, show: yamlTab },
  edit: { title: texts.tabs.edit, show: async (target, body, view) => (await import("./edit.js")).editObject(target, body, view), verb: "patch" },
  events: { title: texts.tabs.events, show: eventsTab },
  graph: { title: texts.tabs.graph, show: async (target, body, view) => (await import("./graph.js")).drawGraph(target, body, view) },
  logs: {
    title: texts.streams.logs, show: async (target, body, view) => (await import("./logs.js")).logsTab(target, body, view),
    pods: { kinds: ["Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"], verbs: ["get"], subresource: "log" },
  },
  terminal: {
    title: texts.streams.terminal, show: async (target, body, view) => (await import("./terminal.js")).terminalTab(target, body, view),
    pods: { kinds: ["Pod"], verbs: ["get", "create"], subresource: "exec" },
  },
};
const GROUPS_WITH_PODS = ["", "apps", "batch"];

/**
 * Return the view of an object.
 *
 * @param {Resource} resource
 * @param {string} namespace
 * @param {string} name
 * @param {string} tab
 * @returns {View}
 */
export function objectView(resource, namespace, name, tab) {
  const target = { resource, namespace, name, path: pathOf(resource, namespace, name) };
  const body = h("div", { class: "main fills" }), actions = h("span"), deletion = h("span");
  const tabs = Object.entries(TABS).filter(([, { verb, pods }]) => (!verb || resource.verbs.includes(verb)) && (!pods || (GROUPS_WITH_PODS.includes(resource.group) && pods.kinds.includes(resource.kind))));
  const element = frame([
    h("h1", null, name), h("span", { class: "kind" }, h("a", { href: listAddress(resource) }, resource.kind), namespace ? texts.inNamespace(namespace) : ""),
    h("span", { class: "grow" }), actions,
    deletion,
  ], [
    h("nav", { class: "tabs", "aria-label": texts.views }, tabs.map(([id, { title, pods }]) => {
      const link = h("a", { href: objectAddress(resource, namespace, name, id), "aria-current": id === tab ? "page" : null, hidden: pods && id !== tab }, title);
      if (pods && id !== tab) offer(link, pods, target);
      return link;
    })),
    body,
  ]);
  /** @type {View} */
  const view = { element, title: name, close: null };
  offerDeletion(target, deletion);
  const shown = (TABS[tab] || TABS.overview).show(target, body, view, actions);
  if (shown instanceof Promise) shown.catch((error) => replace(body, h("div", { class: "page" }, problem(error))));
  return view;
}

/** Show the link to a tab if the user may read what it shows. @param {HTMLElement} link @param {{ verbs: string[], subresource: string }} pods @param {Target} target */
async function offer(link, { verbs, subresource }, { resource, namespace, name }) {
  const attributes = { resource: "pods", subresource, namespace, ...(resource.kind === "Pod" ? { name } : {}) };
  const answers = await Promise.all(verbs.map((verb) => api.mayI({ verb, ...attributes }).catch(() => false)));
  link.hidden = !answers.every(Boolean);
}

/**
 * Return the view in which an object is created.
 *
 * @param {Resource} resource
 * @param {string} namespace
 * @returns {View}
 */
export function newView(resource, namespace) {
  const body = h("div", { class: "main fills" });
  const title = texts.newObject(resource.kind);
  /** @type {View} */
  const view = { element: frame(h("h1", null, title), body), title, close: null };
  import("./edit.js").then((edit) => edit.createObject(resource, namespace, body, view)).catch((error) => replace(body, problem(error)));
  return view;
}

/** Show the YAML of an object, and read it again after each change. @param {Target} target @param {HTMLElement} body @param {View} view */
function yamlTab({ resource, namespace, name, path }, body, view) {
  const stop = new AbortController();
  view.close = () => stop.abort();
  const question = questionOf("get", resource, namespace, name);
  /** @type {YAMLView | null} */
  let shown = null;
  const draw = async () => {
    const text = await api.text(path, { accept: "application/yaml", signal: stop.signal, question });
    const before = shown;
    shown = new YAMLView(text, before);
    shown.show(body, before);
    return /^ {2}resourceVersion: "?(\d+)"?$/m.exec(text)?.[1] || "";
  };
  /** Return whether the object still exists when the watch ends. */
  const follow = async () => {
    const version = await draw();
    const query = new URLSearchParams({ watch: "1", fieldSelector: `metadata.name=${name}`, resourceVersion: version });
    for await (const event of api.watch(`${pathOf(resource, namespace)}?${query}`, { accept: METADATA, signal: stop.signal })) {
      if (event.type === "MODIFIED") await draw();
      else if (event.type === "DELETED") {
        body.prepend(h("div", { class: "note" }, h("div", { class: "problem", role: "alert" }, texts.deleted)));
        return false;
      }
    }
    return true;
  };
  (async () => {
    while (!stop.signal.aborted) {
      try {
        if (!(await follow())) return;
      } catch (error) {
        if (stop.signal.aborted) return;
        if (!shown) { replace(body, h("div", { class: "page" }, problem(error))); return; }
        if ([403, 404, 405].includes(error.code)) return;
      }
      await api.pause(1000, stop.signal);
    }
  })();
}

/** Show the events about an object, followed by a watch. @param {Target} target @param {HTMLElement} body @param {View} view */
async function eventsTab({ namespace, path }, body, view) {
  const events = api.resourceOf("", "events");
  if (!events) throw new Error(texts.noEvents);
  /** @type {TableView | null} */
  let table = null;
  let closed = false;
  view.close = () => { closed = true; table?.close(); };
  const object = await api.json(path, { accept: METADATA });
  if (closed) return;
  const selection = { fieldSelector: `involvedObject.uid=${object.metadata.uid}` };
  table = new TableView(events, namespace || "", (row) => objectAddress(events, row.namespace, row.name), selection);
  replace(body, table.element);
}

/** Offer the deletion of an object if the user may delete it. @param {Target} target @param {Element} place */
async function offerDeletion(target, place) {
  const { resource, namespace, name } = target;
  if (!resource.verbs.includes("delete")) return;
  const { group, version, resource: plural } = resource;
  if (!(await api.mayI({ verb: "delete", group, version, resource: plural, namespace: namespace || "", name }).catch(() => false))) return;
  replace(place, button(texts.delete, () => askToDelete(target), { class: "danger", id: "delete" }));
}

/**
 * Ask before an object is deleted.
 *
 * @param {Target} target
 * @param {() => void} [succeeded] Called afterwards; by default the table is shown.
 */
export async function askToDelete({ resource, namespace, name }, succeeded = () => { location.hash = listAddress(resource); }) {
  const [{ DELETE }, { openAction }] = await Promise.all([import("../lib/actions.js"), import("../components/actiondialog.js")]);
  const object = { apiVersion: apiVersionOf(resource), kind: resource.kind, metadata: { name, uid: "", creationTimestamp: "", ...(namespace ? { namespace } : {}) } };
  // The object is read for its uid, the precondition.
  openAction({ action: { ...DELETE, reads: true }, resource, objects: [object], partial: true, succeeded });
}
