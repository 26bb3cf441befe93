// The graph of owners and dependents of an object: owners on the left, dependents on the right.

import * as api from "./api.js";
import { objectAddress } from "./app.js";
import { h, problem, replace, svg } from "./dom.js";

const METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";
const LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";
const PAGE = 500, MAX_PAGES = 20, MAX_SHOWN = 300, CONCURRENCY = 4;
const WIDTH = 250, HEIGHT = 46, GAP_X = 60, GAP_Y = 14;

const node = (resource, kind, meta) => ({ resource, kind, name: meta.name, namespace: meta.namespace || "", uid: meta.uid, owners: meta.ownerReferences || [], lost: false });

/** Return all objects with owners in the namespaces in which dependents of the object can exist. */
async function sweep(namespace, signal, progress) {
  const kinds = api.resources().filter((one) => one.verbs.includes("list") && one.resource !== "events" && one.resource !== "componentstatuses" && (!namespace || one.namespaced));
  const found = new Map();
  let cut = false, done = 0, next = 0, refused = 0;
  const work = async () => {
    while (next < kinds.length) {
      const resource = kinds[next++];
      let token = "";
      try {
        for (let page = 0; page < MAX_PAGES; page++) {
          const query = new URLSearchParams({ limit: PAGE });
          if (token) query.set("continue", token);
          const list = await api.json(`${api.pathOf(resource, namespace)}?${query}`, { accept: LIST, signal });
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

async function ownersOf(one, all, signal) {
  for (const reference of one.owners) {
    if (all.has(reference.uid)) continue;
    const resource = api.resourceOfKind(reference.apiVersion, reference.kind);
    let owner = { resource, kind: reference.kind, name: reference.name, namespace: one.namespace, uid: reference.uid, owners: [], lost: true };
    if (resource) {
      try {
        const { metadata } = await api.json(api.pathOf(resource, one.namespace, reference.name), { accept: METADATA, signal });
        if (metadata.uid === reference.uid) owner = node(resource, reference.kind, metadata);
      } catch (error) { if (signal.aborted) throw error; }
    }
    all.set(reference.uid, owner);
    await ownersOf(owner, all, signal);
  }
}

export async function drawGraph({ resource, namespace, name, path }, body, view) {
  const stop = new AbortController();
  view.close = () => stop.abort();
  const progressText = h("p", { class: "quiet", "aria-live": "polite" }, "Searching…");
  replace(body, h("div", { class: "page" }, progressText));
  try {
    const { metadata } = await api.json(path, { accept: METADATA, signal: stop.signal, question: api.questionOf("get", resource, namespace, name) });
    const here = node(resource, resource.kind, metadata);
    const { found, cut, refused } = await sweep(here.namespace, stop.signal, (done, all) => { progressText.textContent = `Searching dependents: ${done} of ${all} kinds`; });
    const shown = new Map([[here.uid, here]]);
    await ownersOf(here, shown, stop.signal);
    const children = new Map();
    for (const one of found.values()) for (const { uid } of one.owners) children.set(uid, [...(children.get(uid) || []), one]);
    const queue = [here];
    while (queue.length && shown.size < MAX_SHOWN) {
      for (const child of children.get(queue.shift().uid) || []) if (!shown.has(child.uid)) { shown.set(child.uid, child); queue.push(child); }
    }
    const notes = [shown.size === 1 ? "The object has no owners and no dependents." : "", shown.size >= MAX_SHOWN ? `Only ${MAX_SHOWN} are shown.` : "",
      cut ? "Not all objects were searched." : "", refused ? `${refused} kinds could not be searched.` : ""].filter(Boolean).join(" ");
    replace(body, h("div", { class: "graph" }, notes ? h("p", { class: "quiet" }, notes) : null, drawing(shown, here)));
  } catch (error) { if (!stop.signal.aborted) replace(body, h("div", { class: "page" }, problem(error))); }
}

function drawing(shown, here) {
  const level = new Map();
  const levelOf = (one, above = new Set()) => {
    if (level.has(one.uid)) return level.get(one.uid);
    if (above.has(one.uid)) return 0;
    above.add(one.uid);
    const owners = one.owners.map(({ uid }) => shown.get(uid)).filter(Boolean);
    const found = owners.length ? Math.max(...owners.map((owner) => levelOf(owner, above))) + 1 : 0;
    level.set(one.uid, found);
    return found;
  };
  const columns = [];
  for (const one of shown.values()) (columns[levelOf(one)] ||= []).push(one);
  const place = new Map();
  columns.forEach((column, x) => {
    const rank = (one) => Math.min(...one.owners.map(({ uid }) => (place.has(uid) ? place.get(uid).y : Infinity)));
    column.sort((a, b) => rank(a) - rank(b) || (a.kind + a.name < b.kind + b.name ? -1 : 1));
    column.forEach((one, y) => place.set(one.uid, { x: x * (WIDTH + GAP_X), y: y * (HEIGHT + GAP_Y) }));
  });
  const width = columns.length * (WIDTH + GAP_X) - GAP_X + 4;
  const height = Math.max(...columns.map((column) => column.length)) * (HEIGHT + GAP_Y) + 4;
  const lines = [], boxes = [];
  for (const one of shown.values()) {
    const { x, y } = place.get(one.uid);
    for (const { uid } of one.owners) {
      const from = place.get(uid);
      if (!from) continue;
      const startX = from.x + WIDTH, startY = from.y + HEIGHT / 2, endY = y + HEIGHT / 2, middle = (startX + x) / 2;
      lines.push(svg("path", { d: `M${startX} ${startY}C${middle} ${startY} ${middle} ${endY} ${x} ${endY}` }));
    }
    const text = one.name.length > 30 ? `${one.name.slice(0, 29)}…` : one.name;
    const box = svg("g", { class: one.uid === here.uid ? "here" : one.lost ? "lost" : "", transform: `translate(${x} ${y})` },
      svg("title", null, `${one.kind} ${one.name}${one.lost ? " (not found)" : ""}`), svg("rect", { width: WIDTH, height: HEIGHT, rx: 7 }),
      svg("text", { class: "what", x: 12, y: 18 }, one.kind), svg("text", { x: 12, y: 35 }, text));
    boxes.push(one.resource && !one.lost ? svg("a", { href: objectAddress(one.resource, one.namespace, one.name, "graph") }, box) : box);
  }
  return svg("svg", { width, height, viewBox: `-2 -2 ${width} ${height}`, role: "group", "aria-label": "Owners and dependents" }, lines, boxes);
}
