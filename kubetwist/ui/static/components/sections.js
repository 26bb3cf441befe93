// Sections of the page of an object, as elements.

import { resourceOfKind } from "../core/api.js";
import { h } from "../core/dom.js";
import { objectAddress } from "../lib/addresses.js";
import { present } from "../lib/describe/model.js";
import { age } from "../lib/durations.js";

/** @typedef {import("../lib/describe/model.js").Rich} Rich */
/** @typedef {import("../lib/describe/model.js").Section} Section */
/** @typedef {import("../lib/describe/model.js").Single} Single */
/** @typedef {import("../lib/describe/model.js").Value} Value */

/** @param {import("../lib/describe/model.js").Chip} chip */
const chip = ({ key, value }) => h("span", { class: "chip" }, value === "" ? key : `${key}=${value}`);

/** @param {Rich} value */
function rich({ text, tone, title, to, since, code, chips }) {
  if (chips) return h("span", { class: "chips" }, chips.map(chip));
  if (since) {
    const time = Date.parse(since);
    return Number.isNaN(time) ? h("span", null, since) : h("time", { datetime: since, title: since }, age(time));
  }
  const resource = to && resourceOfKind(to.apiVersion, to.kind);
  const content = to && resource ? h("a", { href: objectAddress(resource, resource.namespaced ? to.namespace : "", to.name) }, text) : code ? h("code", null, text) : text;
  return h("span", { class: tone || null, title: title || null }, content);
}

/** @param {Single} value */
const single = (value) => (typeof value === "object" && value !== null ? rich(value) : h("span", null, String(value)));

/** @param {Value} value */
function valueOf(value) {
  if (!Array.isArray(value)) return present(value) ? single(value) : null;
  const shown = value.filter(present);
  return shown.length > 1 ? h("ul", { class: "values" }, shown.map((one) => h("li", null, single(one)))) : shown.map(single);
}

/**
 * Return the element of a section.
 *
 * @param {Section} section
 */
export function sectionElement({ title, fields, table }) {
  return h("section", { class: "section" }, h("h2", null, title),
    fields ? h("dl", null, fields.map(([name, value, meaning]) => [h("dt", { title: meaning || null, class: meaning ? "explained" : null }, name), h("dd", null, valueOf(value))])) : null,
    table ? plainTable(table.columns, table.rows.map((row) => row.map(valueOf))) : null);
}

/**
 * Return a table that scrolls sideways if it is too wide.
 *
 * @param {string[]} columns
 * @param {import("../core/dom.js").Child[][]} rows
 */
export const plainTable = (columns, rows) => h("div", { class: "wide-table" }, h("table", { class: "plain" },
  h("thead", null, h("tr", null, columns.map((name) => h("th", { scope: "col" }, name)))),
  h("tbody", null, rows.map((cells) => h("tr", null, cells.map((cell) => h("td", null, cell)))))));
