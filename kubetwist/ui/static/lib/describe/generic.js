// Sections that all objects have: metadata, conditions, and for custom resources their fields.

import { texts } from "../texts.js";
import { chips, code, fieldsSection, listOf, since, tableSection } from "./model.js";

/** @typedef {import("../types.js").KubeObject} KubeObject */
/** @typedef {import("./model.js").Field} Field */
/** @typedef {import("./model.js").Section} Section */

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
 * Return the scalar fields of a part of an object, by their path.
 *
 * @param {any} value
 * @param {string} [path]
 * @param {number} [depth]
 * @returns {Field[]}
 */
export function scalars(value, path = "", depth = 0) {
  if (value === null || value === undefined) return [];
  if (typeof value !== "object") return [[path, typeof value === "string" ? shortened(value) : String(value)]];
  if (depth >= MAX_DEPTH) return [[path, "…"]];
  if (Array.isArray(value) && value.every((one) => typeof one !== "object")) return value.length ? [[path, shortened(value.join(", "))]] : [];
  const found = [];
  for (const [name, member] of Object.entries(value)) {
    const here = Array.isArray(value) ? `${path}[${name}]` : path ? `${path}.${name}` : name;
    for (const field of scalars(member, here, depth + 1)) {
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
 * @returns {(Section | null)[]}
 */
export function genericSections(object) {
  const { spec, status = {}, apiVersion, kind, metadata, ...others } = /** @type {any} */ (object);
  const { conditions, ...state } = status;
  return [
    fieldsSection(t.specification, scalars(spec)),
    fieldsSection(t.otherFields, scalars(others)),
    fieldsSection(t.status, scalars(state)),
  ];
}

