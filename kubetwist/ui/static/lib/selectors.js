// Requirements of label and field selectors: as they are typed, and the fields that the kinds have.

import { splitSelector } from "./addresses.js";

/** @typedef {{ key: string, operator: "=" | "!=" | "in" | "notin" | "exists" | "!" | "gt" | "lt", values: string[] }} Requirement */

/** Fields of all objects. */
const COMMON = ["metadata.name", "metadata.namespace"];
const EVENT = ["involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid", "involvedObject.apiVersion", "involvedObject.fieldPath", "reason", "reportingComponent", "source", "type"];

/** Fields by "group/resource", beside those of all objects, as in the reference. @type {Record<string, string[]>} */
const FIELDS = {
  "/pods": ["spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName"],
  "/nodes": ["spec.unschedulable"],
  "/replicationcontrollers": ["status.replicas"],
  "/events": EVENT,
  "events.k8s.io/events": ["regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid", "regarding.apiVersion", "regarding.fieldPath", "reason", "reportingController", "type"],
  "/namespaces": ["status.phase"],
  "/secrets": ["type"],
  "/services": ["spec.clusterIP", "spec.type"],
  "batch/jobs": ["status.successful"],
  "certificates.k8s.io/certificatesigningrequests": ["spec.signerName"],
  "certificates.k8s.io/clustertrustbundles": ["spec.signerName"],
};

/** Values of fields that have few. @type {Record<string, string[]>} */
const VALUES = {
  "pods status.phase": ["Pending", "Running", "Succeeded", "Failed", "Unknown"],
  "namespaces status.phase": ["Active", "Terminating"],
  "pods spec.restartPolicy": ["Always", "OnFailure", "Never"],
  "pods spec.hostNetwork": ["true", "false"],
  "nodes spec.unschedulable": ["true", "false"],
  "services spec.type": ["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"],
  "events type": ["Normal", "Warning"],
  "secrets type": ["Opaque", "kubernetes.io/tls", "kubernetes.io/dockerconfigjson", "kubernetes.io/service-account-token", "kubernetes.io/basic-auth", "kubernetes.io/ssh-auth"],
};

/** Columns of a Table that show a field. @type {Record<string, string>} */
const COLUMNS = {
  "metadata.name": "Name", "spec.nodeName": "Node", "status.podIP": "IP", reason: "Reason", type: "Type", "spec.clusterIP": "Cluster-IP", "spec.signerName": "SignerName",
};

/**
 * Return the fields by which the objects of a resource can be selected.
 *
 * @param {{ group: string, resource: string, namespaced: boolean }} resource
 * @param {string[]} [selectable] Further ones, of a custom resource.
 */
export const fieldsOf = ({ group, resource, namespaced }, selectable = []) =>
  [...COMMON.slice(0, namespaced ? 2 : 1), ...(FIELDS[`${group}/${resource}`] ?? []), ...selectable];

/**
 * Return the fields that a definition of a custom resource declares for a version.
 *
 * @param {any} definition
 * @param {string} version
 * @returns {string[]}
 */
export function selectableFields(definition, version) {
  /** @type {any[]} */
  const versions = definition?.spec?.versions ?? [];
  const found = versions.find((one) => one.name === version);
  return (found?.selectableFields ?? []).map((/** @type {{ jsonPath: string }} */ one) => one.jsonPath.replace(/^\./, ""));
}

/** Return the known values of a field. @param {string} resource @param {string} field */
export const valuesOfField = (resource, field) => VALUES[`${resource} ${field}`] ?? [];

/** Return the name of the column that shows a field; "" without one. @param {string} field */
export const columnOfField = (field) => COLUMNS[field] ?? "";

const NAME = "(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)";
const KEY = new RegExp(`^(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?${NAME}$`);
const VALUE = new RegExp(`^${NAME}?$`);
const SET = /^(\S+)\s+(in|notin)\s*\(([^()]*)\)$/;
const COMPARED = /^([^=!<>\s(),]+)\s*(==|=|!=|<|>)\s*([^\s(),=!<>]*)$/;

/**
 * Parse a requirement of a label selector.
 *
 * @param {string} text
 * @returns {Requirement | null} null if it is none.
 */
export function requirementOf(text) {
  const compared = COMPARED.exec(text);
  if (compared) {
    const operator = compared[2] === "==" ? "=" : compared[2] === ">" ? "gt" : compared[2] === "<" ? "lt" : /** @type {"=" | "!="} */ (compared[2]);
    return { key: compared[1], operator, values: [compared[3]] };
  }
  const set = SET.exec(text);
  if (set) return { key: set[1], operator: /** @type {"in" | "notin"} */ (set[2]), values: set[3].split(",").map((one) => one.trim()) };
  const exists = /^(!?)\s*([^\s!=<>(),]+)$/.exec(text);
  return exists ? { key: exists[2], operator: exists[1] ? "!" : "exists", values: [] } : null;
}

/**
 * Return what is wrong with a requirement of a label selector: a part of it, or "" if nothing is.
 *
 * @param {string} text
 */
export function wrongPart(text) {
  const found = requirementOf(text);
  if (!found) return text;
  if (!KEY.test(found.key)) return found.key;
  if (found.operator === "gt" || found.operator === "lt") return /^-?\d+$/.test(found.values[0]) ? "" : found.values[0] || text;
  return found.values.find((value) => !VALUE.test(value)) ?? "";
}

/**
 * Return whether a word of the filter is a requirement of a selector and not a word to search for.
 *
 * @param {string} word
 */
export const isSelector = (word) => /^[^=!<>\s]+(=|!=)/.test(word) || /^![^=!\s]/.test(word) || SET.test(word);

const TERM = /[^\s=!<>]+\s+(?:in|notin)\s*\([^()]*\)|\S+/g;

/**
 * Split the text of a filter into plain words and requirements.
 *
 * @param {string} text
 * @returns {{ words: string, selectors: string[], last: string }} `last` is the term at the end, "" after a space.
 */
export function termsOf(text) {
  const terms = text.match(TERM) ?? [];
  return {
    words: terms.filter((one) => !isSelector(one)).join(" "),
    selectors: terms.filter(isSelector).flatMap(splitSelector),
    last: /\s$/.test(text) ? "" : terms.at(-1) ?? "",
  };
}

/** A bounded collection of the labels of objects, for completion. */
export class SeenLabels {
  /** @param {number} [maxKeys] @param {number} [maxValues] Per key. */
  constructor(maxKeys = 300, maxValues = 200) {
    this.maxKeys = maxKeys;
    this.maxValues = maxValues;
    /** @type {Map<string, Set<string>>} */
    this.values = new Map();
  }

  /** @param {Record<string, string> | undefined} labels */
  add(labels) {
    for (const key in labels) {
      let values = this.values.get(key);
      if (!values) {
        if (this.values.size >= this.maxKeys) continue;
        this.values.set(key, (values = new Set()));
      }
      if (values.size < this.maxValues) values.add(labels[key]);
    }
  }
}

const MAX_COMPLETIONS = 12;

/**
 * Return the completions of the last term of a filter: keys, and values once there is an operator. Those that begin with it are
 * before those that contain it.
 *
 * @param {string} term
 * @param {{ labels: Map<string, Set<string>>, fields: string[], fieldValues: (field: string) => Iterable<string> }} known
 * @returns {{ text: string, field: boolean, finished: boolean }[]} `finished` if the text is a whole requirement.
 */
export function completions(term, { labels, fields, fieldValues }) {
  const match = /^(!?)([^=!<>]*)(==|=|!=)?(.*)$/.exec(term);
  if (!match || !term) return [];
  const [, not, key, operator, typed] = match;
  const ranked = (/** @type {Iterable<string>} */ all, /** @type {string} */ start) => {
    const wanted = start.toLowerCase();
    const found = [...all].filter((one) => one.toLowerCase().includes(wanted)).sort();
    return [...found.filter((one) => one.toLowerCase().startsWith(wanted)), ...found.filter((one) => !one.toLowerCase().startsWith(wanted))];
  };
  if (operator && !not) {
    const field = fields.includes(key);
    const values = new Set(field ? fieldValues(key) : labels.get(key) ?? []);
    return ranked(values, typed).slice(0, MAX_COMPLETIONS).map((value) => ({ text: `${key}${operator}${value}`, field, finished: true }));
  }
  if (operator) return [];
  const labelKeys = ranked(labels.keys(), key);
  if (not) return labelKeys.slice(0, MAX_COMPLETIONS).map((one) => ({ text: `!${one}`, field: false, finished: true }));
  return [...labelKeys.map((one) => ({ text: `${one}=`, field: false, finished: false })), ...ranked(fields, key).map((one) => ({ text: `${one}=`, field: true, finished: false })),
    ...(labels.has(key) ? [{ text: key, field: false, finished: true }] : [])].slice(0, MAX_COMPLETIONS);
}
