// The user's changes as a server-side apply: afterwards the page owns only these fields and fields of earlier changes.

export const MANAGER = "kubetwist-ui";

/** @typedef {Record<string, any>} Fields */

/** @param {any} value */
const isMap = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

/**
 * Return whether two values of JSON are equal.
 *
 * @param {any} one
 * @param {any} other
 * @returns {boolean}
 */
export function equal(one, other) {
  if (one === other) return true;
  if (Array.isArray(one)) return Array.isArray(other) && one.length === other.length && one.every((value, index) => equal(value, other[index]));
  if (!isMap(one) || !isMap(other)) return false;
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => Object.hasOwn(other, name) && equal(one[name], other[name]));
}

/**
 * Return the parts of `after` that differ from `before` or are in `owned`; lists are atomic.
 *
 * @param {any} before
 * @param {Fields} after
 * @param {any} owned A FieldsV1.
 */
function picked(before, after, owned) {
  /** @type {Fields} */
  const found = {};
  for (const [name, value] of Object.entries(after)) {
    const old = isMap(before) && Object.hasOwn(before, name) ? before[name] : undefined;
    const mine = owned && owned[`f:${name}`];
    if (isMap(value) && isMap(old)) {
      const inner = picked(old, value, mine);
      if (Object.keys(inner).length || (mine && (mine["."] || !Object.keys(mine).length))) found[name] = inner;
    } else if (mine || !equal(value, old)) found[name] = value;
  }
  return found;
}

/**
 * Return the configuration to apply for a change.
 *
 * @param {any} before The object that was read.
 * @param {any} after The object as edited.
 * @returns {Fields}
 */
export function changes(before, after) {
  const entry = (before.metadata.managedFields || []).find((/** @type {any} */ one) => one.manager === MANAGER && one.operation === "Apply" && !one.subresource);
  const found = picked(before, after, entry && entry.fieldsV1);
  const { name, namespace } = before.metadata;
  return { ...found, apiVersion: after.apiVersion, kind: after.kind, metadata: { ...(found.metadata || {}), name, ...(namespace ? { namespace } : {}) } };
}

/**
 * Return the paths of the removed fields.
 *
 * @param {Fields | undefined} before
 * @param {Fields} after
 * @param {string} [path]
 */
export function removals(before, after, path = "") {
  /** @type {string[]} */
  const found = [];
  for (const [name, old] of Object.entries(before || {})) {
    const here = path ? `${path}.${name}` : name;
    if (!Object.hasOwn(after, name)) found.push(here);
    else if (isMap(old) && isMap(after[name])) found.push(...removals(old, after[name], here));
  }
  return found;
}

/**
 * Return whether a value contains an integer that JavaScript cannot represent exactly.
 *
 * @param {any} value
 * @returns {boolean}
 */
export function inexact(value) {
  if (typeof value === "number") return Number.isInteger(value) && !Number.isSafeInteger(value);
  return value !== null && typeof value === "object" && Object.values(value).some(inexact);
}

/**
 * Return the conflicts of a refused server-side apply.
 *
 * @param {any} error An APIError.
 * @returns {{ field: string, manager: string }[]}
 */
export function conflictsOf(error) {
  /** @type {{ reason?: string, field?: string, message?: string }[]} */
  const causes = error.status?.details?.causes || [];
  return causes.filter((cause) => cause.reason === "FieldManagerConflict").map(({ field = "", message = "" }) =>
    ({ field, manager: /^conflict with "(.*?)"/.exec(message)?.[1] ?? message }));
}
