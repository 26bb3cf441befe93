// Sections that all objects have: metadata, conditions, and for custom resources their fields.

import { toneOf } from "../rows.js";
import { meaningOf, memberSchema, namesInOrder } from "../schema.js";
import { texts } from "../texts.js";
import { chips, code, fieldsSection, listOf, since, tableSection } from "./model.js";

/** @typedef {import("../types.js").KubeObject} KubeObject */
/** @typedef {import("./model.js").Field} Field */
/** @typedef {import("./model.js").Section} Section */

/**
 * @typedef {object} Context What else is known of a custom resource.
 * @property {import("../schema.js").Schema} [schema] Of the object.
 * @property {{ name: string, description: string, value: unknown }[]} [columns] The columns that the server prints.
 */

const t = texts.describe;
// Fields of custom resources that are shown; the others are in the YAML.
const MAX_FIELDS = 60, MAX_DEPTH = 4, MAX_TEXT = 400;
// These conditions are good when they are "False".
const NEGATIVE = /Pressure$|Unavailable$|Failure|Failed|Degraded|Stalled|Progressing$|Terminating|^Disruption/;

/** @param {KubeObject} object @returns {Section | null} */
export function metadataSection({ metadata }) {
  const { annotations = {}, ownerReferences = [], finalizers = [] } = /** @type {any} */ (metadata);
  const shown = Object.entries(annotations).filter(([key]) => key !== "kubectl.kubernetes.io/last-applied-configuration");
  return fieldsSection(t.metadata, [
    [t.created, since(metadata.creationTimestamp)],
    [t.deletionRequested, since(metadata.deletionTimestamp)],
    [t.owner, listOf(ownerReferences).map((owner) => ({ text: `${owner.kind} ${owner.name}`, to: { ...owner, namespace: metadata.namespace } }))],
    [t.labels, chips(metadata.labels)],
    [t.annotations, shown.map(([key, value]) => ({ text: `${key}: ${shortened(String(value))}`, code: true }))],
    [t.finalizers, finalizers.map((/** @type {string} */ one) => code(one))],
  ]);
}

/** @param {string} text */
const shortened = (text) => (text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text);

/**
 * Return the class of a condition: most are good when "True", some when "False".
 *
 * @param {string} type
 * @param {string} status
 */
export function conditionTone(type, status) {
  if (status === "Unknown") return "waiting";
  if (type === "Progressing") return status === "True" ? "" : "bad";
  return (status === "True") === NEGATIVE.test(type) ? "bad" : "good";
}

/** @param {KubeObject} object @returns {Section | null} */
export function conditionsSection({ status }) {
  const conditions = listOf(status?.conditions).filter((one) => typeof one.type === "string");
  return tableSection(t.conditions, t.conditionColumns, conditions.map((one) => [
    one.type, { text: String(one.status), tone: conditionTone(one.type, String(one.status)) }, one.reason, one.message, since(one.lastTransitionTime ?? one.lastUpdateTime),
  ]));
}

/**
 * Return the scalar fields of a part of an object, by their path, in the order of the schema.
 *
 * @param {any} value
 * @param {import("../schema.js").Schema} [schema]
 * @param {string} [path]
 * @param {number} [depth]
 * @returns {Field[]}
 */
export function scalars(value, schema, path = "", depth = 0) {
  if (value === null || value === undefined) return [];
  const meaning = meaningOf(schema);
  if (typeof value !== "object") return [[path, schema?.format === "date-time" && typeof value === "string" ? since(value) : typeof value === "string" ? shortened(value) : String(value), meaning]];
  if (depth >= MAX_DEPTH) return [[path, "…", meaning]];
  if (Array.isArray(value) && value.every((one) => typeof one !== "object")) return value.length ? [[path, shortened(value.join(", ")), meaning]] : [];
  const found = [];
  for (const name of namesInOrder(value, schema)) {
    // Authorities have sections of their own.
    if (name === "caBundle") continue;
    const here = Array.isArray(value) ? `${path}[${name}]` : path ? `${path}.${name}` : name;
    for (const field of scalars(value[name], memberSchema(schema, name), here, depth + 1)) {
      if (found.length >= MAX_FIELDS) return found;
      found.push(field);
    }
  }
  return found;
}

/**
 * Return the sections of a kind that has none of its own.
 *
 * @param {KubeObject} object
 * @param {Context} [context]
 * @returns {(Section | null)[]}
 */
export function genericSections(object, { schema, columns = [] } = {}) {
  const { spec, status = {}, apiVersion, kind, metadata, ...others } = /** @type {any} */ (object);
  const { conditions, ...state } = status;
  return [
    fieldsSection(t.columns, columns.filter(({ value }) => value !== null && value !== undefined).map(({ name, description, value }) => [name, { text: String(value), tone: toneOf(String(value), name) }, description])),
    fieldsSection(t.specification, scalars(spec, memberSchema(schema, "spec"))),
    fieldsSection(t.otherFields, scalars(others, schema)),
    fieldsSection(t.status, scalars(state, memberSchema(schema, "status"))),
  ];
}
