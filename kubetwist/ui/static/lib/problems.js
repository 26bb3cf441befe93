// What is wrong with objects: pure functions from an object to its problem. Objects may have any content.

import { texts } from "./texts.js";

/**
 * @typedef {object} Problem
 * @property {string} reason
 * @property {string} detail "" without one.
 * @property {number} since Milliseconds since 1970; NaN if unknown.
 */

/** @typedef {(column: string) => string} Cells Returns the text of the cell in a column of a Table; "" if the Table has no such column. */

/**
 * @typedef {object} Check Which objects of a resource are read, and what is wrong with one of them.
 * @property {string} group
 * @property {string} resource
 * @property {boolean} namespaced
 * @property {string} [fieldSelector] What the server selects by.
 * @property {(cells: Cells) => boolean} [healthy] Whether a row of a Table shows that nothing is wrong. Objects are read only of pages
 *   of rows with others.
 * @property {boolean} [undiscovered] Whether only objects are read that discovery does not confirm: CustomResourceDefinitions are large.
 * @property {(object: any, now: number) => Problem | null} problem
 */

/** @typedef {{ resource: import("./types.js").Resource, namespace: string, name: string } & Problem} Found */

const t = texts.start;
const SECOND = 1000, MINUTE = 60 * SECOND;
/** How long a pod may be pending, how long a deletion may take, and for how long a restart is shown, in milliseconds. */
const PENDING = MINUTE, TERMINATING = MINUTE, RESTARTED = 10 * MINUTE;
/** States of containers that start. */
const STARTING = ["", "ContainerCreating", "PodInitializing"];

/** @param {any} value @returns {any} An object; an empty one for anything else. */
const fields = (value) => (typeof value === "object" && value !== null ? value : {});
/** @param {any} value @returns {any[]} */
const items = (value) => (Array.isArray(value) ? value.map(fields) : []);
/** @param {any} value */
const text = (value) => (typeof value === "string" ? value : "");
/** @param {any} value */
const number = (value) => (typeof value === "number" && Number.isFinite(value) ? value : 0);
/** @param {any} value Returns milliseconds. */
const time = (value) => (typeof value === "string" ? Date.parse(value) : NaN);
/** @param {any} object */
const created = (object) => time(fields(object.metadata).creationTimestamp);
/** @param {any} object @param {string} type */
const condition = (object, type) => items(fields(object.status).conditions).find((one) => one.type === type);
/** @param {string} reason @param {number} since @param {string} [detail] @returns {Problem} */
const found = (reason, since, detail = "") => ({ reason, detail, since });

/** Return a deletion that takes too long. @param {any} object @param {number} now @param {number} grace Milliseconds. */
function terminating(object, now, grace) {
  const since = time(fields(object.metadata).deletionTimestamp);
  return now - since > grace ? found("Terminating", since, items(fields(object.status).conditions).filter((one) => one.status === "True").map((one) => text(one.message)).filter(Boolean).join(" ")) : null;
}

/** @param {any} pod @param {number} now @returns {Problem | null} */
export function podProblem(pod, now) {
  const status = fields(pod.status), phase = text(status.phase), ready = fields(condition(pod, "Ready"));
  const statuses = [...items(status.initContainerStatuses), ...items(status.containerStatuses)];
  if (fields(pod.metadata).deletionTimestamp) return terminating(pod, now, TERMINATING);
  if (phase === "Succeeded") return null;
  const changed = time(ready.lastTransitionTime), since = Number.isNaN(changed) ? created(pod) : changed;
  if (phase === "Failed" || phase === "Unknown") return found(text(status.reason) || phase, since, text(status.message));
  const waiting = statuses.map((one) => fields(fields(one.state).waiting)).find((one) => !STARTING.includes(text(one.reason)));
  if (waiting) return found(text(waiting.reason), since, text(waiting.message));
  if (phase === "Pending") {
    const scheduled = fields(condition(pod, "PodScheduled")), refused = scheduled.status === "False";
    return now - created(pod) > PENDING ? found((refused && text(scheduled.reason)) || phase, created(pod), refused ? text(scheduled.message) : "") : null;
  }
  if (ready.status === "False") return found(t.notReady, since, text(ready.message));
  return restarted(statuses, now);
}

/** Return the last restart, if it was a short time ago. @param {any[]} statuses @param {number} now @returns {Problem | null} */
function restarted(statuses, now) {
  const ends = statuses.filter((one) => number(one.restartCount) > 0).map((one) => fields(fields(one.lastState).terminated)).filter((one) => now - time(one.finishedAt) < RESTARTED);
  if (!ends.length) return null;
  const last = ends.reduce((one, other) => (time(other.finishedAt) > time(one.finishedAt) ? other : one));
  return found(t.restarted, time(last.finishedAt), t.lastEnd(text(last.reason), number(last.exitCode)));
}

/** Return whether the cells of a pod show that it is ready and was not restarted lately. @param {Cells} cells */
function podHealthy(cells) {
  const [ready, all] = cells("Ready").split("/");
  // "3 (2m ago)"; hours and days are longer than what is shown.
  return cells("Status") === "Running" && ready === all && !/\((?:\d+s|\dm\d*s?|1\dm) ago\)/.test(cells("Restarts"));
}

/** @param {any} object @param {number} wanted @param {number} available @param {string} type The type of the condition that says since when. @returns {Problem | null} */
function unavailable(object, wanted, available, type) {
  if (available >= wanted) return null;
  const reason = fields(condition(object, type)), changed = reason.status === "True" ? NaN : time(reason.lastTransitionTime);
  return found(t.available(available, wanted), Number.isNaN(changed) ? created(object) : changed, reason.status === "True" ? "" : text(reason.message));
}

/** The number of replicas that a workload wants. @param {any} object */
const wantedReplicas = ({ spec }) => (fields(spec).replicas === undefined ? 1 : number(fields(spec).replicas));

/** @param {any} object @returns {Problem | null} */
export function deploymentProblem(object) {
  const progress = fields(condition(object, "Progressing"));
  if (progress.status === "False") return found(text(progress.reason) || "Progressing=False", time(progress.lastTransitionTime), text(progress.message));
  return unavailable(object, wantedReplicas(object), number(fields(object.status).availableReplicas), "Available");
}

/** Return whether a cell "2/3" shows that all are there. @param {string} cell */
function complete(cell) {
  const [some, all] = cell.split("/");
  return all !== undefined && Number(some) >= Number(all);
}

/** @param {any} object @returns {Problem | null} */
export const statefulSetProblem = (object) => unavailable(object, wantedReplicas(object), number(fields(object.status).availableReplicas), "Available");
/** @param {any} object @returns {Problem | null} */
export const daemonSetProblem = (object) => unavailable(object, number(fields(object.status).desiredNumberScheduled), number(fields(object.status).numberAvailable), "Available");
/** Return the problem of a ReplicaSet; that of one with an owner is shown by the owner. @param {any} object @returns {Problem | null} */
export const replicaSetProblem = (object) => (items(fields(object.metadata).ownerReferences).length ? null : unavailable(object, wantedReplicas(object), number(fields(object.status).availableReplicas), "ReplicaFailure"));

/** @param {any} object @returns {Problem | null} */
export function jobProblem(object) {
  const failed = condition(object, "Failed");
  return failed?.status === "True" ? found(text(failed.reason) || "Failed", time(failed.lastTransitionTime), text(failed.message)) : null;
}

/** @param {any} node @returns {Problem | null} */
export function nodeProblem(node) {
  const ready = fields(condition(node, "Ready"));
  if (ready.status !== "True") return found(t.nodeNotReady, ready.status === undefined ? created(node) : time(ready.lastTransitionTime), text(ready.message));
  const pressure = items(fields(node.status).conditions).filter((one) => one.status === "True" && one.type !== "Ready");
  if (pressure.length) return found(pressure.map((one) => text(one.type)).join(", "), Math.min(...pressure.map((one) => time(one.lastTransitionTime))), text(pressure[0].message));
  if (fields(node.spec).unschedulable !== true) return null;
  const taint = items(fields(node.spec).taints).find((one) => one.key === "node.kubernetes.io/unschedulable");
  return found(t.cordoned, time(taint?.timeAdded));
}

/** @param {any} claim @param {number} now @returns {Problem | null} */
export function claimProblem(claim, now) {
  const phase = text(fields(claim.status).phase);
  if (phase === "Bound") return null;
  return phase === "Lost" || now - created(claim) > PENDING ? found(phase || "Pending", created(claim)) : null;
}

/** Return a condition that is not true. @param {string} type @returns {(object: any) => Problem | null} */
export const untrue = (type) => (object) => {
  const one = fields(condition(object, type));
  if (one.status === "True") return null;
  const changed = time(one.lastTransitionTime);
  return found(text(one.reason) || `${type}=${text(one.status) || "Unknown"}`, Number.isNaN(changed) ? created(object) : changed, text(one.message));
};

/** @param {any} request A CertificateSigningRequest. @returns {Problem | null} */
export function requestProblem(request) {
  const conditions = items(fields(request.status).conditions);
  const failed = conditions.find((one) => one.type === "Failed");
  if (failed) return found(text(failed.reason) || "Failed", time(failed.lastTransitionTime), text(failed.message));
  return conditions.length ? null : found("Pending", created(request), text(fields(request.spec).signerName));
}

/** All checks, in the order in which their problems are shown. @type {Check[]} */
export const CHECKS = [
  { group: "", resource: "nodes", namespaced: false, problem: nodeProblem },
  { group: "apiregistration.k8s.io", resource: "apiservices", namespaced: false, healthy: (cells) => cells("Available") === "True", problem: untrue("Available") },
  { group: "apiextensions.k8s.io", resource: "customresourcedefinitions", namespaced: false, undiscovered: true, problem: untrue("Established") },
  { group: "", resource: "namespaces", namespaced: false, fieldSelector: "status.phase!=Active", problem: (object, now) => terminating(object, now, TERMINATING) },
  { group: "certificates.k8s.io", resource: "certificatesigningrequests", namespaced: false, problem: requestProblem },
  { group: "cert-manager.io", resource: "certificates", namespaced: true, problem: untrue("Ready") },
  { group: "apps", resource: "deployments", namespaced: true, healthy: (cells) => complete(cells("Ready")) && complete(`${cells("Available")}/${cells("Ready").split("/")[1]}`) && complete(`${cells("Up-to-date")}/${cells("Ready").split("/")[1]}`), problem: deploymentProblem },
  { group: "apps", resource: "statefulsets", namespaced: true, healthy: (cells) => complete(cells("Ready")), problem: statefulSetProblem },
  { group: "apps", resource: "daemonsets", namespaced: true, healthy: (cells) => complete(`${cells("Available")}/${cells("Desired")}`), problem: daemonSetProblem },
  { group: "apps", resource: "replicasets", namespaced: true, healthy: (cells) => complete(`${cells("Ready")}/${cells("Desired")}`), problem: replicaSetProblem },
  { group: "batch", resource: "jobs", namespaced: true, healthy: (cells) => ["Complete", "Running", "Suspended"].includes(cells("Status")), problem: jobProblem },
  { group: "", resource: "persistentvolumeclaims", namespaced: true, healthy: (cells) => cells("Status") === "Bound", problem: claimProblem },
  { group: "", resource: "pods", namespaced: true, fieldSelector: "status.phase!=Running,status.phase!=Succeeded", problem: podProblem },
  { group: "", resource: "pods", namespaced: true, fieldSelector: "status.phase=Running", healthy: podHealthy, problem: podProblem },
];

/**
 * Return whether all rows of a Table show that nothing is wrong.
 *
 * @param {any} table
 * @param {(cells: Cells) => boolean} healthy
 */
export function allHealthy(table, healthy) {
  if (table.kind !== "Table") return false;
  /** @type {Map<string, number>} */
  const places = new Map(items(table.columnDefinitions).map(({ name }, index) => [text(name), index]));
  return items(table.rows).every(({ cells }) => healthy((column) => String((Array.isArray(cells) ? cells : [])[places.get(column) ?? -1] ?? "")));
}

/** @param {Found} a @param {Found} b */
const byName = (a, b) => (a.namespace === b.namespace ? (a.name < b.name ? -1 : 1) : a.namespace < b.namespace ? -1 : 1);

/**
 * Sort problems of one check in place: the newest first, those without a time last.
 *
 * @param {Found[]} all
 */
export const newestFirst = (all) => all.sort((a, b) => (Number.isNaN(b.since) ? -Infinity : b.since) - (Number.isNaN(a.since) ? -Infinity : a.since) || byName(a, b));
