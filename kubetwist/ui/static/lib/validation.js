// The rules for keys and values of labels, annotations and taints (k8s.io/apimachinery, pkg/util/validation).

import { texts } from "./texts.js";

const t = texts.operations;
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const NAME = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const MAX_NAME = 63, MAX_PREFIX = 253, MAX_ANNOTATIONS = 256 * 1024;

/**
 * Return what is wrong with the key of a label, annotation or taint; "" if nothing is.
 *
 * @param {string} key
 */
export function keyProblem(key) {
  if (key === "") return t.keyMissing;
  const parts = key.split("/"), name = parts.at(-1) ?? "";
  if (parts.length > 2 || !NAME.test(name) || name.length > MAX_NAME) return t.invalidKey(key);
  if (parts.length === 2 && (!SUBDOMAIN.test(parts[0]) || parts[0].length > MAX_PREFIX)) return t.invalidPrefix(key);
  return "";
}

/**
 * Return what is wrong with the value of a label or taint; "" if nothing is.
 *
 * @param {string} value
 */
export const valueProblem = (value) => (value === "" || (NAME.test(value) && value.length <= MAX_NAME) ? "" : t.invalidValue(value));

/**
 * Return the first problem of rows with keys and values; "" without one.
 *
 * @param {{ key: string, value?: string }[]} rows
 * @param {boolean} annotations Whether all values are valid, and the case of prefixes does not matter.
 */
export function rowsProblem(rows, annotations = false) {
  const keys = rows.map(({ key }) => key), twice = keys.find((key, index) => keys.indexOf(key) !== index);
  if (twice !== undefined) return t.keyTwice(twice);
  const found = rows.map(({ key, value = "" }) => keyProblem(annotations ? key.toLowerCase() : key) || (annotations ? "" : valueProblem(value))).find(Boolean);
  if (found) return found;
  const size = annotations ? rows.reduce((sum, { key, value = "" }) => sum + new TextEncoder().encode(key + value).length, 0) : 0;
  return size > MAX_ANNOTATIONS ? t.annotationsTooLarge : "";
}
