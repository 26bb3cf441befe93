// Nodes, volumes, namespaces, service accounts, autoscalers, budgets and definitions of custom resources.

import { bytesText, quantityOf } from "../quantities.js";
import { texts } from "../texts.js";
import { chips, code, fieldsSection, link, listOf, progress, since, state, tableSection } from "./model.js";

/** @typedef {import("../types.js").KubeObject} KubeObject */
/** @typedef {import("./model.js").Section} Section */

const t = texts.describe;

/** @param {string} name @param {string | undefined} amount */
const amountText = (name, amount) => (/memory|storage|hugepages/.test(name) && Number.isFinite(quantityOf(amount)) ? bytesText(quantityOf(amount)) : amount);

/** @param {KubeObject} object @returns {(Section | null)[]} */
export function nodeSections({ spec = {}, status = {} }) {
  const info = status.nodeInfo ?? {};
  const capacity = status.capacity ?? {}, allocatable = status.allocatable ?? {};
  return [
    fieldsSection(t.status, [
      [t.scheduling, spec.unschedulable ? { text: t.cordoned, tone: "waiting" } : { text: t.schedulable, tone: "good" }],
      [t.addresses, listOf(status.addresses).map((one) => `${one.type}: ${one.address}`)], [t.podCIDRs, spec.podCIDRs], [t.provider, code(spec.providerID)],
      [t.kubelet, info.kubeletVersion], [t.runtime, info.containerRuntimeVersion], [t.system, [info.osImage, info.architecture, info.kernelVersion].filter(Boolean).join(", ")],
    ]),
    tableSection(t.taints, t.taintColumns, listOf(spec.taints).map((taint) => [taint.key, taint.value, taint.effect, since(taint.timeAdded)])),
    tableSection(t.capacity, t.capacityColumns, Object.keys(capacity).sort().map((name) => [name, amountText(name, capacity[name]), amountText(name, allocatable[name])])),
  ];
}

/** @param {KubeObject} object @returns {(Section | null)[]} */
export function claimSections({ spec = {}, status = {} }) {
  return [fieldsSection(t.status, [
    [t.phase, state(status.phase)], [t.volume, link("v1", "PersistentVolume", spec.volumeName)], [t.storageClass, link("storage.k8s.io/v1", "StorageClass", spec.storageClassName)],
    [t.requested, spec.resources?.requests?.storage], [t.capacity, status.capacity?.storage], [t.accessModes, (spec.accessModes ?? []).join(", ")], [t.volumeMode, spec.volumeMode],
  ])];
}

/** @param {KubeObject} object @returns {(Section | null)[]} */
export const namespaceSections = ({ spec = {}, status = {} }) => [fieldsSection(t.status, [[t.phase, state(status.phase)], [t.finalizers, spec.finalizers]])];

/** @param {any} metric A MetricSpec. @param {any[]} current The MetricStatuses. */
function metricRow(metric, current) {
  const kind = metric.type ?? "";
  const part = metric[kind.charAt(0).toLowerCase() + kind.slice(1)] ?? {};
  const name = part.name ?? part.metric?.name ?? "";
  const found = current.map((one) => one[kind.charAt(0).toLowerCase() + kind.slice(1)]).find((one) => one && (one.name ?? one.metric?.name) === name);
  const amount = (/** @type {any} */ value) => (value?.averageUtilization !== undefined ? `${value.averageUtilization} %` : value?.averageValue ?? value?.value ?? "");
  return [kind, name, amount(found?.current), amount(part.target)];
}

/** @param {KubeObject} object @returns {(Section | null)[]} */
export function autoscalerSections({ metadata, spec = {}, status = {} }) {
  const target = spec.scaleTargetRef ?? {};
  return [
    fieldsSection(t.status, [
      [t.target, { text: `${target.kind} ${target.name}`, to: { ...target, namespace: metadata.namespace } }],
      [t.replicas, progress(status.currentReplicas, status.desiredReplicas)], [t.limits, `${spec.minReplicas ?? 1} – ${spec.maxReplicas}`], [t.lastScale, since(status.lastScaleTime)],
    ]),
    tableSection(t.metrics, t.metricColumns, listOf(spec.metrics).map((metric) => metricRow(metric, listOf(status.currentMetrics)))),
  ];
}

/** @param {KubeObject} object @returns {(Section | null)[]} */
export function definitionSections({ spec = {}, status = {} }) {
  const names = spec.names ?? {};
  return [
    fieldsSection(t.status, [
      [t.group, spec.group], [t.kind, names.kind], [t.names, [names.plural, names.singular, ...(names.shortNames ?? [])].filter(Boolean).join(", ")], [t.categories, (names.categories ?? []).join(", ")],
      [t.scope, spec.scope], [t.conversion, spec.conversion?.strategy], [t.storedVersions, (status.storedVersions ?? []).join(", ")],
    ]),
    tableSection(t.versions, t.versionColumns, listOf(spec.versions).map((one) => [one.name, one.served ? t.yes : t.no, one.storage ? t.yes : t.no, one.deprecated ? { text: t.yes, tone: "waiting" } : t.no, Object.keys(one.subresources ?? {}).join(", ")])),
  ];
}

/** @param {KubeObject} object @returns {(Section | null)[]} */
export const serviceAccountSections = (object) => {
  const { metadata, secrets, imagePullSecrets, automountServiceAccountToken: mounted } = /** @type {any} */ (object);
  const secret = (/** @type {any} */ one) => link("v1", "Secret", one.name, metadata.namespace);
  return [fieldsSection(t.status, [[t.mountsToken, mounted === false ? t.no : t.yes], [t.secrets, listOf(secrets).map(secret)], [t.pullSecrets, listOf(imagePullSecrets).map(secret)]])];
};

/** @param {KubeObject} object @returns {(Section | null)[]} */
export const budgetSections = ({ spec = {}, status = {} }) => [fieldsSection(t.status, [
  [t.disruptions, { text: String(status.disruptionsAllowed ?? 0), tone: status.disruptionsAllowed ? "good" : "waiting" }],
  [t.healthy, `${status.currentHealthy ?? 0} / ${status.desiredHealthy ?? 0}`], [t.expectedPods, status.expectedPods],
  [t.minAvailable, spec.minAvailable], [t.maxUnavailable, spec.maxUnavailable], [t.selector, chips(spec.selector?.matchLabels)],
])];

/** @param {KubeObject} object A ConfigMap or Secret. @returns {(Section | null)[]} */
export const dataSections = (object) => {
  const { type, immutable } = /** @type {any} */ (object);
  return [fieldsSection(t.status, [[t.type, type], [t.immutable, immutable ? t.yes : ""]])];
};
