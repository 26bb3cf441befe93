// Actions that change parts of an object with a form: labels, annotations, taints, images; and tokens.

import { MERGE, STRATEGIC, pathTo, slashName } from "./actionmodel.js";
import { equal } from "./patch.js";
import { texts } from "./texts.js";
import { keyProblem, rowsProblem, valueProblem } from "./validation.js";

/** @typedef {import("./actionmodel.js").Action} Action */
/** @typedef {import("./actionmodel.js").Field} Field */
/** @typedef {import("./actionmodel.js").Values} Values */
/** @typedef {import("./types.js").KubeObject} KubeObject */
/** @typedef {{ key: string, value: string, effect: string }} Taint */

const t = texts.operations;
const EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const DEFAULT_TOKEN_SECONDS = 3600, MIN_TOKEN_SECONDS = 600;
/** @type {Field} */
const KEY = { id: "key", label: t.key, type: "text", required: true };

/**
 * Return the changes of a map: of one object, the rows replace it; of many, rows are added and others removed.
 *
 * @param {Record<string, string> | undefined} before
 * @param {Values} values
 * @returns {Record<string, string | null>} null removes a key.
 */
export function mapChanges(before = {}, { rows = [], removed }) {
  const after = new Map(rows.map((/** @type {{ key: string, value: string }} */ { key, value }) => [key, value]));
  const gone = removed ? removed.map((/** @type {{ key: string }} */ { key }) => key) : Object.keys(before).filter((key) => !after.has(key));
  const changed = [...after].filter(([key, value]) => removed || !Object.hasOwn(before, key) || before[key] !== value);
  return Object.fromEntries([...changed, ...gone.map((/** @type {string} */ key) => [key, null])]);
}

/** @param {"labels" | "annotations"} map @param {"label" | "annotate"} word @returns {Action} */
const mapAction = (map, word) => ({
  id: map, label: t[map], submit: t.save, verb: "patch", reads: true, basis: ({ metadata }) => metadata[map],
  fields: (objects) => {
    /** @type {Field} */
    const value = { id: "value", label: t.value, type: map === "annotations" ? "area" : "text" };
    if (objects.length > 1) return [{ id: "rows", label: t.added, type: "rows", columns: [KEY, value], initial: [] }, { id: "removed", label: t.removedKeys, type: "rows", columns: [KEY], initial: [] }];
    const initial = Object.entries(objects[0].metadata[map] ?? {}).map(([key, text]) => ({ key, value: text }));
    return [{ id: "rows", label: t[map], type: "rows", columns: [KEY, value], initial }];
  },
  check: (values, objects) => {
    const { rows = [], removed = [] } = values;
    const changed = objects.some(({ metadata }) => Object.keys(mapChanges(metadata[map], values)).length);
    return rowsProblem([...rows, ...removed], map === "annotations") || (changed ? "" : t.nothingChanged);
  },
  request: (resource, object, values) => ({
    method: "PATCH", path: pathTo(resource, object), type: MERGE,
    body: { metadata: { resourceVersion: object.metadata.resourceVersion, [map]: mapChanges(object.metadata[map], values) } },
  }),
  command: (resource, object, values) => {
    const changes = Object.entries(mapChanges(object.metadata[map], values));
    return ["kubectl", word, slashName(resource, object), ...changes.map(([key, value]) => (value === null ? `${key}-` : `${key}=${value}`)), "--overwrite"];
  },
});

export const LABELS = mapAction("labels", "label"), ANNOTATIONS = mapAction("annotations", "annotate");

/** @param {KubeObject} node @returns {any[]} */
const taintsOf = (node) => node.spec?.taints ?? [];

/** @param {Partial<Taint>} one @param {Partial<Taint>} other */
const sameTaint = (one, other) => one.key === other.key && one.effect === other.effect;

/**
 * Return the taints of a node after a change: unchanged ones keep the time at which they were added.
 *
 * @param {KubeObject} node
 * @param {Values} values
 */
export function taintsAfter(node, { rows = [], removed }) {
  const before = taintsOf(node);
  const wanted = rows.map((/** @type {Taint} */ { key, value, effect }) => ({ key, ...(value ? { value } : {}), effect }));
  const kept = removed ? before.filter((one) => !removed.some((/** @type {{ key: string }} */ { key }) => key === one.key) && !wanted.some((/** @type {Taint} */ other) => sameTaint(one, other))) : [];
  return [...kept, ...wanted.map((/** @type {Taint} */ one) => before.find((other) => sameTaint(one, other) && (one.value ?? "") === (other.value ?? "")) ?? one)];
}

/** @type {Action} */
export const TAINT = {
  id: "taint", label: t.taints, submit: t.save, verb: "patch", reads: true, basis: taintsOf,
  fields: (objects) => {
    /** @type {Field[]} */
    const columns = [KEY, { id: "value", label: t.value, type: "text" }, { id: "effect", label: t.effect, type: "select", options: EFFECTS.map((effect) => [effect, effect]), initial: EFFECTS[0] }];
    if (objects.length > 1) return [{ id: "rows", label: t.added, type: "rows", columns, initial: [] }, { id: "removed", label: t.removedKeys, type: "rows", columns: [KEY], initial: [] }];
    return [{ id: "rows", label: t.taints, type: "rows", columns, initial: taintsOf(objects[0]).map(({ key, value = "", effect }) => ({ key, value, effect })) }];
  },
  check: (values, objects) => {
    const { rows = [], removed = [] } = values;
    const twice = rows.find((/** @type {Taint} */ one, /** @type {number} */ index) => rows.findIndex((/** @type {Taint} */ other) => sameTaint(one, other)) !== index);
    if (twice) return t.keyTwice(`${twice.key}:${twice.effect}`);
    const found = [...rows, ...removed].map(({ key, value = "" }) => keyProblem(key) || valueProblem(value)).find(Boolean);
    return found || (objects.some((node) => !equal(taintsAfter(node, values), taintsOf(node))) ? "" : t.nothingChanged);
  },
  request: (resource, node, values) => ({
    method: "PATCH", path: pathTo(resource, node), type: MERGE, body: { metadata: { resourceVersion: node.metadata.resourceVersion }, spec: { taints: taintsAfter(node, values) } },
  }),
  command: (resource, node, values) => {
    const before = taintsOf(node), after = taintsAfter(node, values);
    const set = after.filter((one) => !before.includes(one)).map((one) => `${one.key}=${one.value ?? ""}:${one.effect}`);
    const gone = before.filter((one) => !after.some((other) => sameTaint(one, other))).map((one) => `${one.key}:${one.effect}-`);
    return ["kubectl", "taint", "nodes", node.metadata.name, ...set, ...gone, "--overwrite"];
  },
};

/** @param {KubeObject} object @returns {any} The PodSpec of a pod or template. */
const podSpec = ({ kind, spec }) => (kind === "Pod" ? spec : kind === "CronJob" ? spec?.jobTemplate?.spec?.template?.spec : spec?.template?.spec);

/** @param {KubeObject} object @returns {{ part: "initContainers" | "containers", name: string, image: string }[]} */
const images = (object) => (/** @type {const} */ (["initContainers", "containers"])).flatMap((part) =>
  (podSpec(object)?.[part] ?? []).map((/** @type {any} */ one) => ({ part, name: one.name, image: String(one.image ?? "") })));

/** @param {KubeObject} object @param {Values} values */
const newImages = (object, values) => images(object).filter(({ name, image }) => values[`image-${name}`] !== undefined && values[`image-${name}`].trim() !== image)
  .map(({ part, name }) => ({ part, name, image: values[`image-${name}`].trim() }));

/** As `kubectl set image`. @type {Action} */
export const SET_IMAGE = {
  id: "image", label: t.setImage, verb: "patch", reads: true, single: true,
  fields: ([object]) => images(object).map(({ name, image }) => ({ id: `image-${name}`, label: name, type: "text", initial: image, required: true, pattern: "\\s*\\S+\\s*" })),
  check: (values, [object]) => (newImages(object, values).length ? "" : t.nothingChanged),
  request: (resource, object, values) => {
    /** @type {Record<string, object[]>} */
    const spec = {};
    for (const { part, name, image } of newImages(object, values)) (spec[part] ??= []).push({ name, image });
    const template = { template: { spec } };
    const body = { spec: object.kind === "Pod" ? spec : object.kind === "CronJob" ? { jobTemplate: { spec: template } } : template };
    return { method: "PATCH", path: pathTo(resource, object), type: STRATEGIC, body };
  },
  command: (resource, object, values) => ["kubectl", "set", "image", slashName(resource, object), ...newImages(object, values).map(({ name, image }) => `${name}=${image}`)],
};

/** @param {Values} values */
const audiencesOf = ({ audiences = "" }) => audiences.split(/[\s,]+/).filter(Boolean);

/** @type {Action} */
export const CREATE_TOKEN = {
  id: "token", label: t.createToken, verb: "create", subresource: "token", single: true,
  fields: () => [
    { id: "seconds", label: t.tokenSeconds, type: "number", initial: String(DEFAULT_TOKEN_SECONDS), min: MIN_TOKEN_SECONDS, required: true },
    { id: "audiences", label: t.tokenAudiences, type: "text", initial: "" },
  ],
  request: (resource, object, values) => {
    const audiences = audiencesOf(values), spec = { expirationSeconds: Number(values.seconds), ...(audiences.length ? { audiences } : {}) };
    return { method: "POST", path: pathTo(resource, object, "token"), body: { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec } };
  },
  command: (resource, object, values) => ["kubectl", "create", "token", object.metadata.name, `--duration=${values.seconds}s`, ...audiencesOf(values).map((/** @type {string} */ one) => `--audience=${one}`)],
  secret: (answer) => String(answer.status?.token ?? ""),
};
