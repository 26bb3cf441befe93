// The graph of owners and dependents of an object: owners on the left, dependents on the right.

import * as api from "../core/api.js";
import { h, problem, replace, svg } from "../core/dom.js";
import { objectAddress } from "../lib/addresses.js";
import { pathOf, questionOf } from "../lib/resources.js";
import { texts } from "../lib/texts.js";
import { arrange } from "../lib/graphlayout.js";

/** @typedef {import("../lib/types.js").Resource} Resource */
/** @typedef {import("../lib/types.js").Meta} Meta */
/** @typedef {import("../lib/types.js").OwnerReference} OwnerReference */

/**
 * @typedef {object} GraphNode
 * @property {Resource | undefined} resource undefined if the server does not serve the kind.
 * @property {string} kind
 * @property {string} name
 * @property {string} namespace
 * @property {string} uid
 * @property {OwnerReference[]} owners
 * @property {boolean} lost Whether the object was not found.
 */

const METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";
const LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";
const PAGE = 500, MAX_PAGES = 20, MAX_SHOWN = 300, CONCURRENCY = 4;
const WIDTH = 250, HEIGHT = 46, GAP_X = 60, GAP_Y = 14;

/**
 * @param {Resource} resource
 * @param {string} kind
 * @param {Meta} meta
 * @returns {GraphNode}
 */
const node = (resource, kind, meta) => ({ resource, kind, name: meta.name, namespace: meta.namespace || "", uid: meta.uid, owners: meta.ownerReferences || [], lost: false });

/**
 * Return all objects with owners in the namespaces in which dependents of the object can exist.
 *
 * @param {string} namespace "" for a cluster-wide object.
 * @param {AbortSignal} signal
 * @param {(done: number, all: number) => void} progress
 */
async function sweep(namespace, signal, progress) {
  const kinds = api.resources().filter((one) => one.verbs.includes("list") && one.resource !== "events" && one.resource !== "componentstatuses" && (!namespace || one.namespaced));
  /** @type {Map<string, GraphNode>} */
  const found = new Map();
  let cut = false, done = 0, next = 0, refused = 0;
  const work = async () => {
    while (next < kinds.length) {
      const resource = kinds[next++];
      let token = "";
      try {
        for (let page = 0; page < MAX_PAGES; page++) {
          const query = new URLSearchParams({ limit: String(PAGE) });
          if (token) query.set("continue", token);
          const list = await api.json(`${pathOf(resource, namespace)}?${query}`, { accept: LIST, signal });
          for (const { metadata } of list.items || []) if (metadata.ownerReferences) found.set(metadata.uid, node(resource, resource.kind, metadata));
          token = (list.metadata && list.metadata.continue) || "";
          if (!token) break;
        }
        if (token) cut = true;
      } catch (error) { if (signal.aborted) throw error; refused++; }
      progress(++done, kinds.length);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
  return { found, cut, refused };
}

/** Add the owners of an object, and theirs. @param {GraphNode} one @param {Map<string, GraphNode>} all @param {AbortSignal} signal */
async function ownersOf(one, all, signal) {
  for (const reference of one.owners) {
    if (all.has(reference.uid)) continue;
    const resource = api.resourceOfKind(reference.apiVersion, reference.kind);
    /** @type {GraphNode} */
    let owner = { resource, kind: reference.kind, name: reference.name, namespace: one.namespace, uid: reference.uid, owners: [], lost: true };
    if (resource) {
      try {
        const { metadata } = await api.json(pathOf(resource, one.namespace, reference.name), { accept: METADATA, signal });
        if (metadata.uid === reference.uid) owner = node(resource, reference.kind, metadata);
      } catch (error) { if (signal.aborted) throw error; }
    }
    all.set(reference.uid, owner);
    await ownersOf(owner, all, signal);
  }
}

/**
 * Show the graph of an object.
 *
 * @param {import("../lib/types.js").Target} target
 * @param {HTMLElement} body
 * @param {import("../lib/types.js").View} view
 */
export async function drawGraph({ resource, namespace, name, path }, body, view) {
  const stop = new AbortController();
  view.close = () => stop.abort();
  const progressText = h("p", { class: "quiet", "aria-live": "polite" }, texts.searching);
  replace(body, h("div", { class: "page" }, progressText));
  try {
    const { metadata } = await api.json(path, { accept: METADATA, signal: stop.signal, question: questionOf("get", resource, namespace, name) });
    const here = node(resource, resource.kind, metadata);
    const { found, cut, refused } = await sweep(here.namespace, stop.signal, (done, all) => { progressText.textContent = texts.searchingDependents(done, all); });
    const shown = new Map([[here.uid, here]]);
    await ownersOf(here, shown, stop.signal);
    /** @type {Map<string, GraphNode[]>} */
    const children = new Map();
    for (const one of found.values()) {
      for (const { uid } of one.owners) {
        const siblings = children.get(uid);
        if (siblings) siblings.push(one);
        else children.set(uid, [one]);
      }
    }
    const queue = [here];
    for (let one = queue.shift(); one && shown.size < MAX_SHOWN; one = queue.shift()) {
      for (const child of children.get(one.uid) || []) if (!shown.has(child.uid)) { shown.set(child.uid, child); queue.push(child); }
    }
    const notes = [shown.size === 1 ? texts.noRelatives : "", shown.size >= MAX_SHOWN ? texts.onlyShown(MAX_SHOWN) : "",
      cut ? texts.notAllSearched : "", refused ? texts.kindsNotSearched(refused) : ""].filter(Boolean).join(" ");
    replace(body, h("div", { class: "graph" }, notes ? h("p", { class: "quiet" }, notes) : null, drawing(shown, here)));
  } catch (error) { if (!stop.signal.aborted) replace(body, h("div", { class: "page" }, problem(error))); }
}

/** @param {Map<string, GraphNode>} shown @param {GraphNode} here */
function drawing(shown, here) {
  const { cells, columns, rows } = arrange(shown);
  const place = new Map([...cells].map(([uid, { column, row }]) => [uid, { x: column * (WIDTH + GAP_X), y: row * (HEIGHT + GAP_Y) }]));
  const width = columns * (WIDTH + GAP_X) - GAP_X + 4, height = rows * (HEIGHT + GAP_Y) + 4;
  const lines = [], boxes = [];
  for (const one of shown.values()) {
    const { x, y } = place.get(one.uid) ?? { x: 0, y: 0 };
    for (const { uid } of one.owners) {
      const from = place.get(uid);
      if (!from) continue;
      const startX = from.x + WIDTH, startY = from.y + HEIGHT / 2, endY = y + HEIGHT / 2, middle = (startX + x) / 2;
      lines.push(svg("path", { d: `M${startX} ${startY}C${middle} ${startY} ${middle} ${endY} ${x} ${endY}` }));
    }
    const text = one.name.length > 30 ? `${one.name.slice(0, 29)}…` : one.name;
    const box = svg("g", { class: one.uid === here.uid ? "here" : one.lost ? "lost" : "", transform: `translate(${x} ${y})` },
      svg("title", null, `${one.kind} ${one.name}${one.lost ? texts.notFoundMark : ""}`), svg("rect", { width: WIDTH, height: HEIGHT, rx: 7 }),
      svg("text", { class: "what", x: 12, y: 18 }, one.kind), svg("text", { x: 12, y: 35 }, text));
    boxes.push(one.resource && !one.lost ? svg("a", { href: objectAddress(one.resource, one.namespace, one.name, "graph") }, box) : box);
  }
  return svg("svg", { width, height, viewBox: `-2 -2 ${width} ${height}`, role: "group", "aria-label": texts.tabs.graph }, lines, boxes);
}
