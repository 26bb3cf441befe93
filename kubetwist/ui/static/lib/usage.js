// The usage of pods and nodes (metrics.k8s.io) beside their requests and limits; quotas and limit ranges of namespaces.

import { selectorText } from "./labelselectors.js";
import { bytesText, quantityOf } from "./quantities.js";
import { kindKey } from "./resources.js";
import { texts } from "./texts.js";

/** @typedef {import("./types.js").KubeObject} KubeObject */

/**
 * @typedef {object} Usage A bar.
 * @property {string} name What uses it.
 * @property {string} resource "cpu", "memory" or another one.
 * @property {number} used NaN if it is unknown.
 * @property {number} request NaN without one.
 * @property {number} limit NaN without one.
 */

/** @typedef {{ collection: "pods" | "nodes", name?: string, labelSelector?: string }} MetricsQuery Where the usage of an object is. */

const MEASURED = ["cpu", "memory"];
const t = texts.describe;
// The part of a limit above which usage is a problem.
const NEAR = 0.9;

/** @param {KubeObject} object @returns {any} The PodSpec of the pod or template. */
const podSpecOf = ({ kind, spec }) => (kind === "Pod" ? spec : spec?.template?.spec);

/**
 * Return where the usage of an object is; null if it has none.
 *
 * @param {KubeObject} object
 * @returns {MetricsQuery | null}
 */
export function metricsQuery(object) {
  const { name } = object.metadata;
  switch (kindKey(object)) {
    case "/Pod": return { collection: "pods", name };
    case "/Node": return { collection: "nodes", name };
    case "apps/Deployment": case "apps/StatefulSet": case "apps/DaemonSet": case "apps/ReplicaSet": {
      const labelSelector = selectorText(object.spec?.selector ?? {});
      return labelSelector ? { collection: "pods", labelSelector } : null;
    }
    default: return null;
  }
}

/** @param {(string | number | undefined)[]} amounts @returns {number} NaN without any. */
const sum = (amounts) => (amounts.length ? amounts.reduce((/** @type {number} */ total, one) => total + quantityOf(one), 0) : NaN);

/**
 * Return the usage of the containers of a pod, or of all pods of a workload together.
 *
 * @param {KubeObject} object
 * @param {any[]} metrics PodMetrics.
 * @returns {Usage[]}
 */
export function podUsage(object, metrics) {
  const spec = podSpecOf(object);
  return [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].flatMap((/** @type {any} */ container) => {
    const found = metrics.flatMap(({ containers = [] }) => containers.filter((/** @type {any} */ one) => one.name === container.name));
    if (!found.length) return [];
    return MEASURED.map((resource) => ({
      name: container.name, resource, used: sum(found.map(({ usage }) => usage?.[resource])),
      request: quantityOf(container.resources?.requests?.[resource]) * found.length, limit: quantityOf(container.resources?.limits?.[resource]) * found.length,
    }));
  });
}

/**
 * Return the usage of a node, the requests of its pods, and what it can allocate.
 *
 * @param {KubeObject} node
 * @param {any} metrics NodeMetrics; null if they are unknown.
 * @param {any[]} pods All pods of the node.
 * @returns {Usage[]}
 */
export function nodeUsage(node, metrics, pods) {
  const running = pods.filter(({ status }) => !["Succeeded", "Failed"].includes(status?.phase));
  const requested = (/** @type {string} */ resource) => running.reduce((total, { spec }) => total + requestOf(spec, resource), 0);
  const { allocatable = {} } = node.status ?? {};
  return [
    ...MEASURED.map((resource) => ({ name: t.node, resource, used: quantityOf(metrics?.usage?.[resource]), request: requested(resource), limit: quantityOf(allocatable[resource]) })),
    { name: t.node, resource: "pods", used: running.length, request: NaN, limit: quantityOf(allocatable.pods) },
  ];
}

/** Return what a pod requests, as the scheduler computes it. @param {any} spec A PodSpec. @param {string} resource */
export function requestOf(spec, resource) {
  const of = (/** @type {any} */ container) => quantityOf(container.resources?.requests?.[resource] ?? 0);
  let sidecars = 0, starting = 0;
  for (const container of spec?.initContainers ?? []) {
    if (container.restartPolicy === "Always") { sidecars += of(container); starting = Math.max(starting, sidecars); }
    else starting = Math.max(starting, sidecars + of(container));
  }
  const running = (spec?.containers ?? []).reduce((/** @type {number} */ total, /** @type {any} */ container) => total + of(container), sidecars);
  return Math.max(running, starting) + quantityOf(spec?.overhead?.[resource] ?? 0);
}

/**
 * Return what a namespace uses of its quotas.
 *
 * @param {any[]} quotas ResourceQuotas.
 * @returns {Usage[]}
 */
export const quotaUsage = (quotas) => quotas.flatMap(({ metadata, spec = {}, status = {} }) => Object.keys(status.hard ?? spec.hard ?? {}).sort().map((resource) => ({
  name: metadata.name, resource, used: quantityOf(status.used?.[resource]), request: NaN, limit: quantityOf(status.hard?.[resource] ?? spec.hard?.[resource]),
})));

/**
 * Return the rows of a table of limit ranges.
 *
 * @param {any[]} ranges LimitRanges.
 * @returns {string[][]} Name, type, resource, minimum, maximum, default request, default limit, ratio.
 */
export const limitRows = (ranges) => ranges.flatMap(({ metadata, spec = {} }) => (spec.limits ?? []).flatMap((/** @type {any} */ limit) => {
  const parts = [limit.min, limit.max, limit.defaultRequest, limit.default, limit.maxLimitRequestRatio];
  const resources = [...new Set(parts.flatMap((part) => Object.keys(part ?? {})))].sort();
  return resources.map((resource) => [metadata.name, limit.type, resource, ...parts.map((part) => String(part?.[resource] ?? ""))]);
}));

/**
 * Format an amount of a resource.
 *
 * @param {string} resource
 * @param {number} amount
 */
export function amountText(resource, amount) {
  if (/memory|storage|hugepages/.test(resource)) return bytesText(amount);
  if (/cpu/.test(resource)) return amount < 10 && !Number.isInteger(amount) ? `${Math.round(amount * 1000)}m` : String(Math.round(amount * 100) / 100);
  return String(amount);
}

/**
 * Return the parts of a bar, as fractions of its length, and its tone.
 *
 * @param {Usage} usage
 * @returns {{ used: number, request: number, limit: number, tone: string }} 0 for what is unknown, and for a usage that
 *   cannot be compared with a request or limit: a full bar would look like a limit that is reached.
 */
export function barOf({ used, request, limit }) {
  const comparable = request > 0 || limit > 0;
  const whole = comparable ? Math.max(...[used, request, limit].filter((one) => Number.isFinite(one))) : 0;
  const part = (/** @type {number} */ amount) => (whole > 0 && Number.isFinite(amount) ? amount / whole : 0);
  const tone = used >= limit * NEAR ? "bad" : used > request ? "waiting" : "good";
  return { used: part(used), request: part(request), limit: part(limit), tone };
}

/**
 * Return a usage in words.
 *
 * @param {Usage} usage
 */
export function usageText({ resource, used, request, limit }) {
  const parts = [[used, t.used], [request, t.requestShort], [limit, t.limitShort]].flatMap(([amount, name]) => (Number.isFinite(amount) ? [`${name} ${amountText(resource, Number(amount))}`] : []));
  return parts.join(" · ");
}
