// The objects in texts of YAML and JSON, and the order in which they can be applied.

import { CORE_SCHEMA, load } from "../vendor/js-yaml/js-yaml.mjs";
import { inexact } from "./patch.js";
import { texts } from "./texts.js";
import { documentsOf } from "./yamltree.js";

/**
 * @typedef {object} Manifest One object, or what is wrong with its document.
 * @property {string} source The name of the text.
 * @property {number} line Where its document begins.
 * @property {any} object null if the document cannot be used.
 * @property {string} error "" if it can.
 */

const t = texts.apply;

/** Fields that the server writes; they must or should not be applied. */
const SERVERS = ["managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink"];

/** @param {any} value */
const isMap = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

/** Return the objects of a list, and of lists in it; other values as they are. @param {any} value @returns {any[]} */
function flat(value) {
  if (Array.isArray(value)) return value.flatMap(flat);
  if (!isMap(value) || typeof value.kind !== "string" || !value.kind.endsWith("List") || !Array.isArray(value.items)) return [value];
  // The items of a typed list have no kind.
  const known = value.kind === "List" ? {} : { apiVersion: value.apiVersion, kind: value.kind.slice(0, -"List".length) };
  return value.items.flatMap((/** @type {any} */ item) => flat(isMap(item) ? { ...known, ...item } : item));
}

/** @param {any} value @returns {string} */
function errorOf(value) {
  if (!isMap(value) || typeof value.apiVersion !== "string" || typeof value.kind !== "string" || !value.apiVersion || !value.kind) return t.noKind;
  if (!isMap(value.metadata) || typeof value.metadata.name !== "string" || !value.metadata.name) return t.noName;
  return inexact(value) ? texts.inexact : "";
}

/** @param {any} object @returns {any} */
function withoutServersFields(object) {
  const metadata = { ...object.metadata };
  for (const name of SERVERS) delete metadata[name];
  return { ...object, metadata };
}

/**
 * Return the objects of a text. A document that is not valid does not hide the others.
 *
 * @param {string} source The name of the text.
 * @param {string} text Documents of YAML or JSON.
 * @returns {Manifest[]}
 */
export function manifestsOf(source, text) {
  return documentsOf(text).flatMap(({ from, to }) => {
    const first = from + Math.max(0, text.slice(from, to).search(/^[ \t]*[^\s#]/m));
    const line = text.slice(0, first).split("\n").length;
    let value;
    try { value = load(text.slice(from, to), { schema: CORE_SCHEMA }); } catch (error) {
      const before = text.slice(0, from).split("\n").length - 1;
      return [{ source, line, object: null, error: error.reason ? texts.inLine(error.reason, before + error.mark.line + 1) : texts.notYAML }];
    }
    return flat(value).map((one) => {
      const error = errorOf(one);
      return { source, line, object: error ? null : withoutServersFields(one), error };
    });
  });
}

/** @param {string} apiVersion */
export const groupOf = (apiVersion) => (apiVersion.includes("/") ? apiVersion.split("/")[0] : "");

/** Kinds by their rank; those of the same rank do not need each other. */
const RANKS = [
  ["Namespace", "CustomResourceDefinition", "PriorityClass", "StorageClass", "RuntimeClass", "IngressClass"],
  ["ResourceQuota", "LimitRange", "ServiceAccount", "Secret", "ConfigMap", "Role", "ClusterRole", "NetworkPolicy", "PersistentVolume"],
  ["RoleBinding", "ClusterRoleBinding", "PersistentVolumeClaim", "Service"],
];
const LAST = ["APIService", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding"];

/** Return the rank of an object: those of lower ranks are applied first. @param {any} object */
export function rankOf({ kind }) {
  if (LAST.includes(kind)) return RANKS.length + 1;
  const rank = RANKS.findIndex((kinds) => kinds.includes(kind));
  return rank < 0 ? RANKS.length : rank;
}

/** Return the names of the namespaces that objects define. @param {any[]} objects */
export const namespacesOf = (objects) => new Set(objects.filter((one) => one.kind === "Namespace" && one.apiVersion === "v1").map((one) => one.metadata.name));

/** Return the kinds that objects define, as "group kind". @param {any[]} objects */
export const definedKinds = (objects) => new Set(objects.filter((one) => one.kind === "CustomResourceDefinition" && groupOf(one.apiVersion) === "apiextensions.k8s.io")
  .map((one) => `${one.spec?.group} ${one.spec?.names?.kind}`));
