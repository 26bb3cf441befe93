// The server's YAML with foldable blocks.

import { h, replace } from "./dom.js";

const MAX_LINES = 20000;

const indentOf = (line) => {
  const spaces = line.length - line.trimStart().length;
  // The dash of a list item has the indentation of the list's key, and belongs to its block.
  return spaces * 2 + (line.trimStart().startsWith("- ") || line.trim() === "-" ? 1 : 0);
};

/** Return for each line the end (exclusive) of the block below it; 0 without a block. */
export function folds(lines) {
  const ends = new Array(lines.length).fill(0);
  const open = [];
  lines.forEach((line, index) => {
    if (!line.trim()) return;
    const indent = indentOf(line);
    while (open.length && open[open.length - 1].indent >= indent) ends[open.pop().index] = index;
    open.push({ index, indent });
  });
  for (const one of open) ends[one.index] = lines.length;
  return ends.map((end, index) => (end > index + 1 ? end : 0));
}

/** Return [from, to] of a member at a path: "metadata", "managedFields"; null if it does not exist. */
function blockOf(lines, ...keys) {
  let from = 0, to = lines.length, indent = 0;
  for (const key of keys) {
    const ends = folds(lines);
    let found = -1;
    for (let index = from; index < to; index++) {
      if (lines[index].startsWith(`${" ".repeat(indent)}${key}:`)) { found = index; break; }
    }
    if (found < 0) return null;
    from = found;
    to = ends[found] || found + 1;
    indent += 2;
    if (keys.at(-1) !== key) from += 1;
  }
  return [from, to];
}

const SERVERS = [["status"], ["metadata", "managedFields"], ["metadata", "resourceVersion"], ["metadata", "uid"],
  ["metadata", "creationTimestamp"], ["metadata", "generation"], ["metadata", "selfLink"], ["metadata", "deletionTimestamp"],
  ["metadata", "deletionGracePeriodSeconds"]];

/** Return the text without the fields that only the server writes. */
export function editable(text) {
  const lines = text.replace(/\n$/, "").split("\n");
  for (const keys of SERVERS) {
    const block = blockOf(lines, ...keys);
    if (block) lines.splice(block[0], block[1] - block[0]);
  }
  return `${lines.join("\n")}\n`;
}

/** Return a stable identifier of each foldable line, which does not depend on the lines above it. */
function placesOf(lines, ends) {
  const open = [], times = new Map();
  return lines.map((line, index) => {
    while (open.length && open.at(-1).end <= index) open.pop();
    if (!ends[index]) return "";
    const place = `${open.length ? open.at(-1).place : ""}/${line.trim()}`;
    const count = (times.get(place) || 0) + 1;
    times.set(place, count);
    open.push({ end: ends[index], place: count > 1 ? `${place}#${count}` : place });
    return open.at(-1).place;
  });
}

/** Return a view of the text; blocks are folded as in the view `before`, by default the managed fields. */
export function yamlView(text, before) {
  const all = text.replace(/\n$/, "").split("\n");
  const lines = all.slice(0, MAX_LINES);
  const ends = folds(lines);
  const places = placesOf(lines, ends);
  const closed = new Set();
  if (before) places.forEach((place, index) => { if (place && before.folded.has(place)) closed.add(index); });
  else {
    const managed = blockOf(lines, "metadata", "managedFields");
    if (managed && ends[managed[0]]) closed.add(managed[0]);
  }
  const elements = lines.map((line, index) => {
    const fold = ends[index] ? h("button", { class: "fold", type: "button", tabindex: index > 400 ? "-1" : null, onclick: () => toggle(index) }, "▾") : null;
    const gutter = h("span", { class: "gutter" }, String(index + 1), h("span", { class: "fold" }, fold));
    const match = /^(\s*(?:- )*)([^\s:"'][^:"']*|"[^"]*")(:)(?=\s|$)(.*)$/.exec(line);
    const content = h("span", null, match ? [match[1], h("span", { class: "key" }, match[2]), match[3], match[4]] : line);
    const dots = h("span", { class: "dots" });
    content.append(dots);
    return { element: h("div", null, gutter, content), fold, dots, name: match ? match[2] : "lines" };
  });
  function toggle(index) {
    if (!closed.delete(index)) closed.add(index);
    apply();
    element.folded = new Set([...closed].map((one) => places[one]));
  }
  function apply() {
    let until = 0;
    elements.forEach((one, index) => {
      one.element.hidden = index < until;
      if (!one.fold) return;
      const shut = closed.has(index);
      one.fold.textContent = shut ? "▸" : "▾";
      one.fold.setAttribute("aria-expanded", String(!shut));
      one.fold.setAttribute("aria-label", `${shut ? "Unfold" : "Fold"} ${one.name}`);
      one.dots.textContent = shut ? ` … ${ends[index] - index - 1} lines` : "";
      if (shut && index >= until) until = ends[index];
    });
  }
  apply();
  const element = h("div", { class: "yaml", tabindex: "0", role: "region", "aria-label": "YAML" });
  element.folded = new Set([...closed].map((one) => places[one]));
  element.focusOn = (place) => elements[places.indexOf(place)]?.fold?.focus({ preventScroll: true });
  element.focused = () => places[elements.findIndex((one) => one.fold && one.fold === document.activeElement)] || "";
  replace(element, elements.map((one) => one.element),
    all.length > MAX_LINES ? h("div", null, h("span", { class: "gutter" }), `… and ${all.length - MAX_LINES} lines more`) : null);
  return element;
}
