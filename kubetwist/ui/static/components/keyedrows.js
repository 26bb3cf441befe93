// A table whose rows stay the same elements while their keys remain, so that the focus and a selection of text are kept.

import { h, replace } from "../core/dom.js";
import { age } from "../lib/durations.js";

/** @typedef {import("../core/dom.js").Child} Child */
/** @typedef {{ key: string, cells: Child[], signature: string }} KeyedRow A row is made again if its signature changes. */

/**
 * Return an element with the time since a moment, which `grow` updates.
 *
 * @param {number} time Milliseconds since 1970; NaN if unknown.
 */
export const since = (time) => (Number.isNaN(time) ? "" : h("time", { datetime: new Date(time).toISOString(), title: new Date(time).toLocaleString() }, age(time)));

/** Update the times in an element. @param {Element} element */
export function grow(element) {
  for (const time of element.querySelectorAll("time")) {
    const text = age(Date.parse(time.dateTime));
    if (time.textContent !== text) time.textContent = text;
  }
}

export class KeyedTable {
  /** @param {string[]} columns @param {string} label */
  constructor(columns, label) {
    this.body = h("tbody");
    /** @type {Map<string, { element: HTMLTableRowElement, signature: string }>} */
    this.rows = new Map();
    this.element = h("div", { class: "wide-table", tabindex: "0", role: "region", "aria-label": label }, h("table", { class: "plain stacked" }, h("thead", null, h("tr", null, columns.map((name) => h("th", { scope: "col" }, name)))), this.body));
    this.columns = columns;
  }

  /** Show these rows. @param {KeyedRow[]} all With distinct keys. */
  show(all) {
    const before = [...this.rows.values()].map(({ element }) => element), kept = new Map(), focused = document.activeElement;
    for (const { key, cells, signature } of all) {
      const known = this.rows.get(key);
      kept.set(key, known?.signature === signature ? known : { signature, element: h("tr", null, cells.map((cell, index) => h("td", { "data-column": this.columns[index] }, cell))) });
    }
    this.rows = kept;
    const after = [...kept.values()].map(({ element }) => element);
    if (after.length === before.length && after.every((one, index) => one === before[index])) return;
    replace(this.body, after);
    if (focused instanceof HTMLElement && this.body.contains(focused)) focused.focus({ preventScroll: true });
  }
}
