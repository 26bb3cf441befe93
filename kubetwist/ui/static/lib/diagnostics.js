// What is wrong in a YAML text, with the places in the text.

import { CORE_SCHEMA, load } from "../vendor/js-yaml/js-yaml.mjs";
import { inexact } from "./patch.js";
import { texts } from "./texts.js";
import { documentsOf, locate, pathOfField, textOf, treeOf } from "./yamltree.js";

/** @typedef {import("./openapi.js").Fault} Fault */
/** @typedef {import("./openapi.js").Schemas} Schemas */
/** @typedef {import("./yamltree.js").Tree} Tree */
/** @typedef {{ from: number, to: number, message: string, brief?: string }} Diagnostic Offsets in the text, what is wrong there, and a shorter text for the list below the editor. */

/** Longer texts, in characters, are not checked. */
export const MAX_CHECKED = 1_000_000;
const t = texts.editor;

/** @param {Fault} fault @param {any} value @returns {string} */
function messageOf({ code, detail, similar }, value) {
  switch (code) {
    case "unknown": return t.unknownField(detail, similar);
    case "missing": return t.missingField(detail);
    case "type": return detail === "string" && ["number", "boolean"].includes(typeof value) ? t.quoteIt : t.wrongType(detail);
    case "value": return t.notAllowed(detail.map(String));
    case "pattern": return t.pattern(detail);
    default: return t.limits[code](detail);
  }
}

/** Return the place of a path: of the key, or of a value that is a scalar. @param {Tree | null} tree @param {import("./yamltree.js").Path} path @param {boolean} onKey @returns {[number, number]} */
function placeOf(tree, path, onKey) {
  const { key, value, found } = locate(tree, path);
  return !onKey && found === path.length && value?.type === "scalar" && value.to > value.from ? [value.from, value.to] : key;
}

/** @param {any} object @param {import("./yamltree.js").Path} path @returns {any} */
const valueAt = (object, path) => path.reduce((/** @type {any} */ value, part) => value?.[part], object);

/**
 * Return the kinds of the documents in a text, for which schemas are needed.
 *
 * @param {string} text
 * @returns {{ apiVersion: string, kind: string, from: number, to: number, tree: Tree | null }[]}
 */
export const kindsOf = (text) => documentsOf(text).map(({ from, to }) => {
  const tree = treeOf(text, from, to);
  return { apiVersion: textOf(tree, "apiVersion"), kind: textOf(tree, "kind"), from, to, tree };
});

/**
 * Check a document.
 *
 * @param {string} text
 * @param {{ apiVersion: string, kind: string, from: number, to: number, tree: Tree | null }} document
 * @param {Schemas | null} schemas Of its group and version; null if they are unknown.
 * @returns {Diagnostic[]}
 */
export function checkDocument(text, { apiVersion, kind, from, to, tree }, schemas) {
  /** @type {any} */
  let value;
  try { value = load(text.slice(from, to), { schema: CORE_SCHEMA }); } catch (error) {
    const at = Math.min(from + (error.mark?.position ?? 0), to);
    const start = Math.min(at, Math.max(from, text.lastIndexOf("\n", at - 1) + 1)), end = text.indexOf("\n", at);
    return [{ from: start, to: Math.max(at, end < 0 || end > to ? to : end), message: error.reason ?? texts.notYAML }];
  }
  if (inexact(value)) return [{ from: tree?.from ?? from, to: (tree?.from ?? from) + 1, message: texts.inexact }];
  const root = schemas?.ofKind(apiVersion, kind);
  if (!schemas || !root) return [];
  return schemas.faults(root, value).map((fault) => {
    const [start, end] = placeOf(tree, fault.path, fault.code === "unknown" || fault.code === "missing");
    return { from: start, to: Math.max(start, end), message: messageOf(fault, valueAt(value, fault.path)) };
  });
}

/**
 * Return the fields that a Status names, with their messages: its causes, and fields in the message of strict decoding
 * and of server-side apply.
 *
 * @param {any} status
 * @returns {{ field: string, message: string }[]}
 */
export function fieldsOf(status) {
  const causes = Array.isArray(status?.details?.causes) ? status.details.causes : [];
  const named = causes.filter((/** @type {any} */ one) => one?.field && typeof one.field === "string").map((/** @type {any} */ one) => ({ field: one.field, message: String(one.message ?? "") }));
  if (named.length) return named;
  const message = typeof status?.message === "string" ? status.message : "";
  const strict = [...message.matchAll(/((?:unknown|duplicate) field) "([^"]+)"/g)].map(([all, , field]) => ({ field, message: all }));
  if (strict.length) return strict;
  return [...message.matchAll(/(?:^|[\s;:])(\.[^\s:]+): ([^\n]+)/g)].map(([, field, meaning]) => ({ field, message: meaning }));
}

/**
 * Return where the fields of a Status are in a document.
 *
 * @param {Tree | null} tree
 * @param {any} status
 * @returns {Diagnostic[]}
 */
export const statusDiagnostics = (tree, status) => fieldsOf(status).map(({ field, message }) => {
  const path = pathOfField(tree, field);
  const [from, to] = placeOf(tree, path, false);
  return { from, to: Math.max(from, to), message: `${field}: ${message}`, brief: field };
});
