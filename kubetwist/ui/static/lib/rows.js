// The rows of a Table: their cells, order and filter.

import { age, isAge, isDuration, secondsOf } from "./durations.js";

/** @typedef {import("./types.js").Column} Column */
/** @typedef {import("./types.js").Meta} Meta */
/** @typedef {import("./types.js").Table} Table */
/** @typedef {import("./types.js").TableRow} TableRow */

/**
 * @typedef {object} Row
 * @property {string} key
 * @property {string} name
 * @property {string} namespace
 * @property {string} uid
 * @property {any[]} cells
 * @property {number} created Milliseconds since 1970.
 * @property {number} ages The index of the cell with the age of the object; -1 without one.
 * @property {boolean} leaving Whether the object is being deleted.
 * @property {number} flashed When the row was changed by an event, by the clock of the page; 0 otherwise.
 */

/** @typedef {{ index: number, down: boolean }} Sorting By the cell `index`; -1 for the namespace. */

const COLLATOR = new Intl.Collator(undefined, { numeric: true });

/**
 * Return the key of a row.
 *
 * @param {{ name: string, namespace?: string }} meta
 */
export const keyOf = (meta) => `${meta.namespace || ""}/${meta.name}`;

/**
 * Return the row of a Table in the form of this page.
 *
 * @param {TableRow} row
 * @param {Column[]} columns
 * @param {number} [flashed]
 * @returns {Row}
 */
export function rowOf(row, columns, flashed = 0) {
  const meta = row.object.metadata;
  const created = Date.parse(meta.creationTimestamp) || 0;
  // The age is incremented in the page only if the column shows the age of the object.
  const aged = columns.findIndex((column) => column.name === "Age");
  return {
    key: keyOf(meta), name: meta.name, namespace: meta.namespace || "", uid: meta.uid, cells: row.cells, created,
    ages: aged >= 0 && created && isAge(String(row.cells[aged]), created) ? aged : -1,
    leaving: Boolean(meta.deletionTimestamp), flashed,
  };
}

/**
 * Return a Table; for servers without Tables one with names and ages, as in kubectl.
 *
 * @param {any} found A Table, a list or an object.
 * @returns {Table}
 */
export function tableOf(found) {
  if (found.kind === "Table") return found;
  /** @type {any[]} */
  const items = found.items || [found];
  const rows = items.map((object) => ({ object, cells: [object.metadata.name, age(Date.parse(object.metadata.creationTimestamp))] }));
  return { columnDefinitions: [{ name: "Name", format: "name" }, { name: "Age" }], rows, metadata: found.metadata };
}

/**
 * Return the rows that contain all words.
 *
 * @param {Row[]} rows
 * @param {string} filter In lower case.
 */
export function filtered(rows, filter) {
  const words = filter.split(/\s+/).filter(Boolean);
  if (!words.length) return rows;
  return rows.filter((row) => {
    const text = `${row.namespace} ${row.cells.join(" ")}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** @param {Row} a @param {Row} b */
const byKey = (a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);

/**
 * Sort rows in place: by a cell, durations by their length; without a sorting by namespace and name.
 *
 * @param {Row[]} rows
 * @param {Sorting | null} sorting
 */
export function sorted(rows, sorting) {
  if (!sorting) return rows.sort(byKey);
  const { index, down } = sorting;
  const turn = down ? -1 : 1;
  const value = (/** @type {Row} */ row) => {
    const found = index < 0 ? row.namespace : index === row.ages ? -row.created : row.cells[index] ?? "";
    return typeof found === "string" && isDuration(found) ? secondsOf(found) : found;
  };
  const values = new Map(rows.map((row) => [row, value(row)]));
  return rows.sort((a, b) => {
    const one = values.get(a), other = values.get(b);
    if (typeof one === "number" && typeof other === "number") return (one - other) * turn || byKey(a, b);
    return COLLATOR.compare(String(one), String(other)) * turn || byKey(a, b);
  });
}

const GOOD = /^(Running|Active|Bound|Ready|Complete|Completed|Succeeded|True|Available|Established)$/;
const BAD = /^(Failed|Error|CrashLoopBackOff|ImagePullBackOff|ErrImagePull|Evicted|NotReady|Lost|OOMKilled|Unknown|Warning)/;
const WAITING = /^(Pending|Terminating|ContainerCreating|Init:|PodInitializing|Released)/;
const WITH_TONE = ["Status", "Ready", "Available", "Phase", "Type", "State"];

/**
 * Return the class of a cell by its meaning; "" for a neutral one.
 *
 * @param {string} text
 * @param {string} column The column's name.
 */
export function toneOf(text, column) {
  if (!WITH_TONE.includes(column)) return "";
  return GOOD.test(text) ? "good" : BAD.test(text) ? "bad" : WAITING.test(text) ? "waiting" : "";
}
