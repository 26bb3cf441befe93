// What the page of an object shows, as data: sections with fields or tables.

import { toneOf } from "../rows.js";
import { texts } from "../texts.js";

/**
 * @typedef {object} Reference A link to another object.
 * @property {string} apiVersion
 * @property {string} kind
 * @property {string} name
 * @property {string} [namespace]
 */

/**
 * @typedef {object} Rich A value that is more than a text.
 * @property {string} text
 * @property {string} [tone] A class: "good", "bad", "waiting", "quiet".
 * @property {string} [title]
 * @property {Reference} [to]
 * @property {string} [since] A timestamp, of which the age is shown.
 * @property {boolean} [code]
 * @property {Chip[]} [chips]
 */

/** @typedef {{ key: string, value: string }} Chip A label. */
/** @typedef {string | number | boolean | null | undefined | Rich} Single */
/** @typedef {Single | Single[]} Value */
/** @typedef {[name: string, value: Value, meaning?: string]} Field */

/**
 * @typedef {object} Section
 * @property {string} title
 * @property {Field[]} [fields]
 * @property {{ columns: string[], rows: Value[][] }} [table]
 */

/** Return whether a value is shown. @param {Value} value @returns {boolean} */
export const present = (value) => value !== undefined && value !== null && value !== "" && (!Array.isArray(value) || value.some(present));

/**
 * Return a section of the fields that have a value; null without any.
 *
 * @param {string} title
 * @param {Field[]} fields
 * @returns {Section | null}
 */
export function fieldsSection(title, fields) {
  const shown = fields.filter(([, value]) => present(value));
  return shown.length ? { title, fields: shown } : null;
}

/**
 * Return a section with a table; null without rows.
 *
 * @param {string} title
 * @param {string[]} columns
 * @param {Value[][]} rows
 * @returns {Section | null}
 */
export const tableSection = (title, columns, rows) => (rows.length ? { title, table: { columns, rows } } : null);

/** @param {string | undefined} time @returns {Rich | undefined} */
export const since = (time) => (time ? { text: time, since: time } : undefined);

/** @param {Record<string, string> | undefined} labels @returns {Rich | undefined} */
export const chips = (labels) => (labels && Object.keys(labels).length ? { text: "", chips: Object.entries(labels).map(([key, value]) => ({ key, value: String(value) })) } : undefined);

/** @param {string | undefined} text @returns {Rich | undefined} */
export const code = (text) => (text ? { text, code: true } : undefined);

/** @param {string} apiVersion @param {string} kind @param {string | undefined} name @param {string} [namespace] @returns {Rich | undefined} */
export const link = (apiVersion, kind, name, namespace) => (name ? { text: name, to: { apiVersion, kind, name, namespace } } : undefined);

/** @param {string | undefined} text @returns {Rich | undefined} */
export const state = (text) => (text ? { text, tone: toneOf(text, "Status") } : undefined);

/** @param {number | undefined} now @param {number | undefined} wanted @returns {Rich} "2 of 3", with its tone. */
export const progress = (now, wanted) => ({ text: texts.someOf(now ?? 0, wanted ?? 0), tone: (now ?? 0) >= (wanted ?? 0) ? "good" : "waiting" });

/** @param {any} value @returns {any[]} The members of a list; none of anything else, which a custom resource may have. */
export const listOf = (value) => (Array.isArray(value) ? value.filter((one) => one !== null && typeof one === "object") : []);
