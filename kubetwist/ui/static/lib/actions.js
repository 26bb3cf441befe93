// Actions on objects: the requests that they send, and the same as a command of kubectl.

import { kindKey } from "./describe/index.js";
import { apiVersionOf, pathOf } from "./resources.js";
import { commandLine } from "./shellwords.js";
import { texts } from "./texts.js";

/** @typedef {import("./types.js").KubeObject} KubeObject */
/** @typedef {import("./types.js").Resource} Resource */

/**
 * @typedef {object} ActionRequest
 * @property {string} method
 * @property {string} path
 * @property {string} [type] The media type of the body.
 * @property {unknown} [body]
 */

/**
 * @typedef {object} Input What the user is asked for.
 * @property {string} label
 * @property {"number" | "text"} type
 * @property {(object: KubeObject) => string} initial
 * @property {string} [pattern]
 * @property {boolean} [required]
 */

/**
 * @typedef {object} Action
 * @property {string} id
 * @property {string} label
 * @property {string} verb The verb of the request, for authorization.
 * @property {string} [subresource]
 * @property {boolean} [danger]
 * @property {Input} [input]
 * @property {(object: KubeObject) => boolean} [offered] Whether the action makes sense in the object's state.
 * @property {(target: Resource, object: KubeObject, input: string, now: Date) => ActionRequest} request
 * @property {(target: Resource, object: KubeObject, input: string) => string[]} command The words of the command, without the namespace.
 */

const MERGE = "application/merge-patch+json", STRATEGIC = "application/strategic-merge-patch+json";
const t = texts.actions;

/** @param {Resource} resource @param {KubeObject} object @param {string} [subresource] */
const pathTo = (resource, { metadata }, subresource) => `${pathOf(resource, metadata.namespace, metadata.name)}${subresource ? `/${subresource}` : ""}`;

/** @param {Resource} resource The name that kubectl accepts. */
const nameOf = (resource) => (resource.group ? `${resource.resource}.${resource.group}` : resource.resource);

/** @param {Resource} resource @param {KubeObject} object */
const slashName = (resource, object) => `${nameOf(resource)}/${object.metadata.name}`;

/** @param {string} id @param {string} label @param {(object: KubeObject) => boolean} offered @param {object} body @param {string[]} words @param {Partial<Action>} [more] @returns {Action} */
const patchAction = (id, label, offered, body, words, more = {}) => ({
  id, label, verb: "patch", offered,
  request: (resource, object) => ({ method: "PATCH", path: pathTo(resource, object), type: MERGE, body }),
  command: (resource, object) => [...words, slashName(resource, object)],
  ...more,
});

/** @type {Action} */
const SCALE = {
  id: "scale", label: t.scale, verb: "patch", subresource: "scale",
  input: { label: t.replicas, type: "number", initial: (object) => String(object.spec?.replicas ?? 1), required: true },
  request: (resource, object, input) => ({ method: "PATCH", path: pathTo(resource, object, "scale"), type: MERGE, body: { spec: { replicas: Number(input) } } }),
  command: (resource, object, input) => ["kubectl", "scale", slashName(resource, object), `--replicas=${input}`],
};

/** As `kubectl rollout restart`: a changed annotation of the template starts a rollout. @type {Action} */
const RESTART = {
  id: "restart", label: t.restart, verb: "patch", offered: (object) => !object.spec?.paused,
  request: (resource, object, input, now) => ({
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
    body: { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: object.metadata.name, namespace: object.metadata.namespace } },
  }),
  command: (resource, object) => ["kubectl", "create", "--raw", pathTo(resource, object, "eviction"), "-f", "-"],
};

/** The Job has the name and the annotation that `kubectl create job --from` gives it. @type {Action} */
const TRIGGER = {
  id: "trigger", label: t.trigger, verb: "create", input: { label: t.jobName, type: "text", initial: (object) => `${object.metadata.name.slice(0, 45)}-manual`, pattern: "[a-z0-9]([\\-a-z0-9]*[a-z0-9])?", required: true },
  request: (resource, object, input) => {
    const template = object.spec?.jobTemplate ?? {};
    const owner = { apiVersion: apiVersionOf(resource), kind: object.kind, name: object.metadata.name, uid: object.metadata.uid, controller: true };
    const metadata = { ...template.metadata, name: input, namespace: object.metadata.namespace, annotations: { "cronjob.kubernetes.io/instantiate": "manual", ...template.metadata?.annotations }, ownerReferences: [owner] };
    return { method: "POST", path: pathOf({ ...resource, resource: "jobs" }, object.metadata.namespace), body: { apiVersion: apiVersionOf(resource), kind: "Job", metadata, spec: template.spec } };
  },
  command: (resource, object, input) => ["kubectl", "create", "job", input, `--from=${slashName({ ...resource, resource: "cronjob", group: "" }, object)}`],
};

/** @param {string} id @param {string} label @param {"Approved" | "Denied"} type @returns {Action} */
const decideAction = (id, label, type) => ({
  id, label, verb: "update", subresource: "approval", danger: type === "Denied",
  offered: (object) => !(object.status?.conditions ?? []).some((/** @type {any} */ one) => ["Approved", "Denied"].includes(one.type)),
  request: (resource, object) => {
    const condition = { type, status: "True", reason: "KubetwistUI", message: t.decidedBy };
    return { method: "PUT", path: pathTo(resource, object, "approval"), body: { ...object, status: { ...object.status, conditions: [...(object.status?.conditions ?? []), condition] } } };
  },
  command: (resource, object) => ["kubectl", "certificate", type === "Approved" ? "approve" : "deny", object.metadata.name],
});

/**
 * By group and kind.
 *
 * @type {Record<string, Action[]>}
 */
const ACTIONS = {
  "apps/Deployment": [SCALE, RESTART, PAUSE, RESUME],
  "apps/StatefulSet": [SCALE, RESTART],
  "apps/DaemonSet": [RESTART],
  "apps/ReplicaSet": [SCALE],
  "/ReplicationController": [SCALE],
  "/Pod": [EVICT],
  "/Node": [CORDON, UNCORDON],
  "batch/CronJob": [TRIGGER, suspendAction("suspend", t.suspend, true), suspendAction("unsuspend", t.resume, false)],
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
  if (Object.hasOwn(ACTIONS, key)) return ACTIONS[key];
  return resource.subresources.includes("scale") ? [SCALE] : [];
}

/**
 * Return the attributes of an action for authorization.
 *
 * @param {Action} action
 * @param {Resource} resource
 * @param {KubeObject} object
 * @returns {Record<string, string>}
 */
export function attributesOf({ id, verb, subresource }, resource, { metadata }) {
  if (id === "trigger") return { verb, group: resource.group, version: resource.version, resource: "jobs", namespace: metadata.namespace ?? "" };
  return { verb, group: resource.group, version: resource.version, resource: resource.resource, namespace: metadata.namespace ?? "", name: metadata.name, ...(subresource ? { subresource } : {}) };
}

/**
 * Return an action as a command of kubectl, to be copied.
 *
 * @param {Action} action
 * @param {Resource} resource
 * @param {KubeObject} object
 * @param {string} input
 */
export function kubectlText(action, resource, object, input) {
  const [program, ...words] = action.command(resource, object, input);
  const namespace = object.metadata.namespace;
  return commandLine([program, ...words, ...(namespace && !words.includes("--raw") ? ["-n", namespace] : [])]);
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
