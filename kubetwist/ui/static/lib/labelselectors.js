// Label selectors (k8s.io/apimachinery, pkg/apis/meta/v1, LabelSelector).

/** @typedef {Record<string, string>} Labels */
/** @typedef {{ matchLabels?: Labels, matchExpressions?: { key: string, operator: string, values?: string[] }[] }} LabelSelector */

/**
 * Return whether a selector selects labels; an empty one selects all.
 *
 * @param {LabelSelector} selector
 * @param {Labels | undefined} labels
 */
export function selects({ matchLabels = {}, matchExpressions = [] }, labels = {}) {
  const has = (/** @type {string} */ key) => Object.hasOwn(labels, key);
  return Object.entries(matchLabels).every(([key, value]) => has(key) && labels[key] === value)
    && matchExpressions.every(({ key, operator, values = [] }) => {
      if (operator === "In") return has(key) && values.includes(labels[key]);
      if (operator === "NotIn") return !has(key) || !values.includes(labels[key]);
      if (operator === "Exists") return has(key);
      return operator === "DoesNotExist" && !has(key);
    });
}

/**
 * Return whether the selector of a Service or ReplicationController selects labels; an empty one selects none.
 *
 * @param {Labels | undefined} selector
 * @param {Labels | undefined} labels
 */
export const selectsByMap = (selector, labels) => Boolean(selector) && Object.keys(selector ?? {}).length > 0 && selects({ matchLabels: selector }, labels);

/**
 * Return a selector as the parameter labelSelector; null if it selects everything.
 *
 * @param {LabelSelector} selector
 */
export function selectorText({ matchLabels = {}, matchExpressions = [] }) {
  const parts = Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`);
  for (const { key, operator, values = [] } of matchExpressions) {
    if (operator === "Exists") parts.push(key);
    else if (operator === "DoesNotExist") parts.push(`!${key}`);
    else parts.push(`${key} ${operator === "In" ? "in" : "notin"} (${values.join(",")})`);
  }
  return parts.length ? parts.join(",") : null;
}
