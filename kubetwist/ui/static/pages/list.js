// The table of a resource.

import { TableView } from "../components/table.js";
import { h } from "../core/dom.js";
import { listAddress, objectAddress } from "../lib/addresses.js";
import { apiVersionOf } from "../lib/resources.js";
import { texts } from "../lib/texts.js";

/** @typedef {import("../lib/types.js").Resource} Resource */
/** @typedef {import("../lib/types.js").View} View */
/** @typedef {import("../components/table.js").Look} Look */

/** Settings of tables by their address. @type {Map<string, Look>} */
const looks = new Map();

/** Forget the settings of all tables. */
export const forgetLooks = () => looks.clear();

/**
 * Return the view of a table.
 *
 * @param {Resource} resource
 * @param {string} namespace "" for all.
 * @param {boolean} returns Whether the user comes back from an object of the table, which then has the filter that it had.
 * @returns {View}
 */
export function listView(resource, namespace, returns) {
  const here = listAddress(resource);
  /** @type {Look} */
  const look = { filter: "", wide: false, sorted: null, selected: "", ...looks.get(here) };
  if (!returns) look.filter = "";
  const table = new TableView(resource, resource.namespaced ? namespace : "", (row) => objectAddress(resource, row.namespace, row.name));
  const filterKey = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "ArrowDown" && event.key !== "Enter") return;
    event.preventDefault();
    table.enter(event.key === "Enter");
  };
  const filter = h("input", { type: "search", id: "filter", placeholder: texts.filterRows, "aria-label": texts.filterRows, spellcheck: false, value: look.filter, oninput: () => table.setFilter(filter.value), onkeydown: filterKey });
  const wide = h("input", { type: "checkbox", id: "wide", checked: look.wide, onchange: () => table.setWide(wide.checked) });
  const element = h("div", { class: "main fills" },
    h("div", { class: "bar" }, h("h1", null, resource.resource), h("span", { class: "kind" }, apiVersionOf(resource)), table.count, h("span", { class: "grow" }),
      filter, h("label", { class: "quiet", for: "wide" }, wide, texts.wide),
      resource.verbs.includes("create") ? h("a", { class: "button", href: listAddress(resource, "new") }, texts.create) : null),
    table.element);
  setTimeout(() => table.table.focus({ preventScroll: true }));
  table.look = look;
  return { element, title: resource.resource, close: () => { looks.set(here, table.look); table.close(); }, filter };
}
