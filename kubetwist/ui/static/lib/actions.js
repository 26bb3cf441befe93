// The actions of each kind.

import { MERGE, STRATEGIC, patchAction, pathTo, slashName } from "./actionmodel.js";
import { ANNOTATIONS, CREATE_TOKEN, LABELS, SET_IMAGE, TAINT } from "./edits.js";
import { apiVersionOf, kindKey, pathOf } from "./resources.js";
import { texts } from "./texts.js";

/** @typedef {import("./types.js").KubeObject} KubeObject */
/** @typedef {import("./types.js").Resource} Resource */

/** @typedef {import("./actionmodel.js").Action} Action */
/** @typedef {import("./actionmodel.js").ActionRequest} ActionRequest */

const t = texts.actions;

/** @type {Action} */
const SCALE = {
  id: "scale", label: t.scale, verb: "patch", subresource: "scale",
  fields: ([object]) => [{ id: "replicas", label: t.replicas, type: "number", initial: object.spec ? String(object.spec.replicas ?? 1) : "", min: 0, required: true }],
  request: (resource, object, { replicas }) => ({ method: "PATCH", path: pathTo(resource, object, "scale"), type: MERGE, body: { spec: { replicas: Number(replicas) } } }),
  command: (resource, object, { replicas }) => ["kubectl", "scale", slashName(resource, object), `--replicas=${replicas}`],
};

/** As `kubectl rollout restart`: a changed annotation of the template starts a rollout. @type {Action} */
const RESTART = {
  id: "restart", label: t.restart, verb: "patch", reads: true, offered: (object) => !object.spec?.paused,
  request: (resource, object, values, now) => ({
    method: "PATCH", path: pathTo(resource, object), type: STRATEGIC,
    body: { spec: { template: { metadata: { annotations: { "kubectl.kubernetes.io/restartedAt": now.toISOString().replace(/\.\d+/, "") } } } } },
  }),
  command: (resource, object) => ["kubectl", "rollout", "restart", slashName(resource, object)],
};

const PAUSE = patchAction("pause", t.pause, (object) => !object.spec?.paused, { spec: { paused: true } }, ["kubectl", "rollout", "pause"]);
const RESUME = patchAction("resume", t.resume, (object) => Boolean(object.spec?.paused), { spec: { paused: null } }, ["kubectl", "rollout", "resume"]);
const CORDON = patchAction("cordon", t.cordon, (object) => !object.spec?.unschedulable, { spec: { unschedulable: true } }, [],
  { command: (resource, object) => ["kubectl", "cordon", object.metadata.name] });
const UNCORDON = patchAction("uncordon", t.uncordon, (object) => Boolean(object.spec?.unschedulable), { spec: { unschedulable: null } }, [],
  { command: (resource, object) => ["kubectl", "uncordon", object.metadata.name] });

/** @param {string} id @param {string} label @param {boolean} suspend @returns {Action} */
const suspendAction = (id, label, suspend) => patchAction(id, label, (object) => Boolean(object.spec?.suspend) !== suspend, { spec: { suspend } }, [],
  { command: (resource, object) => ["kubectl", "patch", slashName(resource, object), "--type=merge", "-p", JSON.stringify({ spec: { suspend } })] });

/** The eviction respects disruption budgets. @type {Action} */
const EVICT = {
  id: "evict", label: t.evict, verb: "create", subresource: "eviction", danger: true, offered: (object) => !object.metadata.deletionTimestamp,
  request: (resource, object) => ({
    method: "POST", path: pathTo(resource, object, "eviction"),
    body: { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: object.metadata.name, namespace: object.metadata.namespace }, deleteOptions: { preconditions: { uid: object.metadata.uid } } },
  }),
  command: (resource, object) => ["kubectl", "create", "--raw", pathTo(resource, object, "eviction"), "-f", "-"],
};

/** The Job has the name and the annotation that `kubectl create job --from` gives it. @type {Action} */
const TRIGGER = {
  id: "trigger", label: t.trigger, verb: "create", single: true,
  fields: ([object]) => [{ id: "name", label: t.jobName, type: "text", initial: `${object.metadata.name.slice(0, 45)}-manual`, pattern: "[a-z0-9]([\\-a-z0-9]*[a-z0-9])?", required: true }],
  request: (resource, object, { name }) => {
    const template = object.spec?.jobTemplate ?? {};
    const owner = { apiVersion: apiVersionOf(resource), kind: object.kind, name: object.metadata.name, uid: object.metadata.uid, controller: true };
    const metadata = { ...template.metadata, name, namespace: object.metadata.namespace, annotations: { "cronjob.kubernetes.io/instantiate": "manual", ...template.metadata?.annotations }, ownerReferences: [owner] };
    return { method: "POST", path: pathOf({ ...resource, resource: "jobs" }, object.metadata.namespace), body: { apiVersion: apiVersionOf(resource), kind: "Job", metadata, spec: template.spec } };
  },
  command: (resource, object, { name }) => ["kubectl", "create", "job", name, `--from=${slashName({ ...resource, resource: "cronjob", group: "" }, object)}`],
};

/** @param {string} id @param {string} label @param {"Approved" | "Denied"} type @returns {Action} */
const decideAction = (id, label, type) => ({
  id, label, verb: "update", subresource: "approval", reads: true, danger: type === "Denied",
  offered: (object) => !(object.status?.conditions ?? []).some((/** @type {any} */ one) => ["Approved", "Denied"].includes(one.type)),
  request: (resource, object) => {
    const condition = { type, status: "True", reason: "KubetwistUI", message: t.decidedBy };
    return { method: "PUT", path: pathTo(resource, object, "approval"), body: { ...object, status: { ...object.status, conditions: [...(object.status?.conditions ?? []), condition] } } };
  },
  command: (resource, object) => ["kubectl", "certificate", type === "Approved" ? "approve" : "deny", object.metadata.name],
});

/** The precondition protects a new object of the same name. @type {Action} */
export const DELETE = {
  id: "delete", label: texts.delete, verb: "delete", danger: true,
  fields: () => [{ id: "propagation", label: texts.dependents, type: "select", initial: "Background", options: Object.entries(texts.propagation).map(([policy, meaning]) => [policy, `${meaning} (${policy})`]) }],
  request: (resource, object, { propagation }) => ({
    method: "DELETE", path: pathTo(resource, object), body: { apiVersion: "v1", kind: "DeleteOptions", propagationPolicy: propagation, preconditions: { uid: object.metadata.uid } },
  }),
  command: (resource, object, { propagation }) => ["kubectl", "delete", slashName(resource, object), `--cascade=${propagation.toLowerCase()}`],
};

/** As `kubectl drain`: several requests, with a dialog of its own. @type {Action} */
const DRAIN = {
  id: "drain", label: texts.operations.drain, verb: "patch", danger: true, dialog: "drain",
  also: [{ verb: "list", group: "", resource: "pods" }, { verb: "create", group: "", resource: "pods", subresource: "eviction" }],
  request: (resource, object) => ({ method: "PATCH", path: pathTo(resource, object), type: MERGE, body: { spec: { unschedulable: true } } }),
  command: (resource, object) => ["kubectl", "drain", object.metadata.name, "--ignore-daemonsets"],
};

/**
 * By group and kind.
 *
 * @type {Record<string, Action[]>}
 */
const ACTIONS = {
  "apps/Deployment": [SCALE, RESTART, PAUSE, RESUME, SET_IMAGE],
  "apps/StatefulSet": [SCALE, RESTART, SET_IMAGE],
  "apps/DaemonSet": [RESTART, SET_IMAGE],
  "apps/ReplicaSet": [SCALE],
  "/ReplicationController": [SCALE],
  "/Pod": [EVICT, SET_IMAGE],
  "/ServiceAccount": [CREATE_TOKEN],
  "/Node": [CORDON, UNCORDON, DRAIN, TAINT],
  "batch/CronJob": [TRIGGER, suspendAction("suspend", t.suspend, true), suspendAction("unsuspend", t.resume, false), SET_IMAGE],
  "batch/Job": [suspendAction("suspend", t.suspend, true), suspendAction("unsuspend", t.resume, false)],
  "certificates.k8s.io/CertificateSigningRequest": [decideAction("approve", t.approve, "Approved"), decideAction("deny", t.deny, "Denied")],
};

/**
 * Return the actions of a kind, whether or not they make sense at present; custom resources with the subresource can be scaled.
 *
 * @param {Resource} resource
 * @param {{ apiVersion: string, kind: string }} object
 * @returns {Action[]}
 */
export function actionsOf(resource, object) {
  const key = kindKey(object);
  const special = Object.hasOwn(ACTIONS, key) ? ACTIONS[key] : resource.subresources.includes("scale") ? [SCALE] : [];
  return resource.verbs.includes("patch") ? [...special, LABELS, ANNOTATIONS] : special;
}

/**
 * Return the actions on many objects of a resource.
 *
 * @param {Resource} resource
 * @returns {Action[]}
 */
export function bulkActionsOf(resource) {
  const found = actionsOf(resource, { apiVersion: apiVersionOf(resource), kind: resource.kind }).filter(({ single }) => !single);
  return resource.verbs.includes("delete") ? [DELETE, ...found] : found;
}

/**
 * Return the attributes of the requests of an action for authorization; without a name those for all objects of a namespace.
 *
 * @param {Action} action
 * @param {Resource} resource
 * @param {{ namespace?: string, name?: string }} metadata
 * @returns {Record<string, string>[]}
 */
export function attributesOf({ id, verb, subresource, also = [] }, { group, version, resource }, { namespace = "", name }) {
  if (id === "trigger") return [{ verb, group, version, resource: "jobs", namespace }];
  return [{ verb, group, version, resource, namespace, ...(name ? { name } : {}), ...(subresource ? { subresource } : {}) }, ...also];
}

/**
 * Return a request as text: its line, and the body as JSON.
 *
 * @param {ActionRequest} request
 */
export function httpText({ method, path, type, body }) {
  const head = `${method} ${path}`;
  return body === undefined ? head : `${head}\nContent-Type: ${type ?? "application/json"}\n\n${JSON.stringify(body, null, 2)}`;
}
