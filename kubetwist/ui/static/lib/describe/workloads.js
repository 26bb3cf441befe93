// Workloads: their progress, strategy and template.

import { selectorText } from "../labelselectors.js";
import { texts } from "../texts.js";
import { chips, code, fieldsSection, link, listOf, progress, since, tableSection } from "./model.js";
import { templateSections } from "./pods.js";

/** @typedef {import("../types.js").KubeObject} KubeObject */
/** @typedef {import("./model.js").Section} Section */

const t = texts.describe;

/** @param {any} update A strategy of a Deployment, StatefulSet or DaemonSet. */
function strategyText(update) {
  const rolling = update?.rollingUpdate ?? {};
  const details = Object.entries(rolling).map(([name, value]) => `${name} ${value}`).join(", ");
  return update?.type ? `${update.type}${details ? ` (${details})` : ""}` : "";
}

/** @param {KubeObject} object @returns {(Section | null)[]} */
export function deploymentSections({ metadata, spec = {}, status = {} }) {
  const wanted = spec.replicas ?? 1;
  return [
    fieldsSection(t.status, [
      [t.ready, progress(status.readyReplicas, wanted)],
      [t.upToDate, progress(status.updatedReplicas, wanted)],
      [t.available, progress(status.availableReplicas, wanted)],
      [t.paused, spec.paused ? { text: t.yes, tone: "waiting" } : ""],
      [t.strategy, strategyText(spec.strategy)],
      [t.selector, code(selectorText(spec.selector ?? {}) ?? "")],
      [t.revision, metadata.annotations?.["deployment.kubernetes.io/revision"]],
    ]),
    ...templateSections(spec.template, metadata.namespace),
  ];
}

/** @param {KubeObject} object @returns {(Section | null)[]} */
export function replicaSetSections({ metadata, spec = {}, status = {} }) {
  const wanted = spec.replicas ?? 1;
  return [
    fieldsSection(t.status, [
      [t.replicas, progress(status.replicas, wanted)], [t.ready, progress(status.readyReplicas, wanted)],
      [t.selector, code(selectorText(spec.selector ?? {}) ?? "")], [t.revision, metadata.annotations?.["deployment.kubernetes.io/revision"]],
    ]),
    ...templateSections(spec.template, metadata.namespace),
  ];
}

/** @param {KubeObject} object @returns {(Section | null)[]} */
export function statefulSetSections({ metadata, spec = {}, status = {} }) {
  const wanted = spec.replicas ?? 1;
  return [
    fieldsSection(t.status, [
      [t.ready, progress(status.readyReplicas, wanted)], [t.upToDate, progress(status.updatedReplicas, wanted)],
      [t.strategy, strategyText(spec.updateStrategy)], [t.podManagement, spec.podManagementPolicy],
      [t.service, link("v1", "Service", spec.serviceName, metadata.namespace)], [t.selector, code(selectorText(spec.selector ?? {}) ?? "")],
      [t.revision, status.updateRevision],
    ]),
    tableSection(t.claims, t.claimColumns, listOf(spec.volumeClaimTemplates).map((one) => [one.metadata?.name, one.spec?.resources?.requests?.storage, one.spec?.storageClassName, (one.spec?.accessModes ?? []).join(", ")])),
    ...templateSections(spec.template, metadata.namespace),
  ];
}

/** @param {KubeObject} object @returns {(Section | null)[]} */
export function daemonSetSections({ metadata, spec = {}, status = {} }) {
  const wanted = status.desiredNumberScheduled ?? 0;
  return [
    fieldsSection(t.status, [
      [t.ready, progress(status.numberReady, wanted)], [t.upToDate, progress(status.updatedNumberScheduled, wanted)], [t.available, progress(status.numberAvailable, wanted)],
      [t.misscheduled, status.numberMisscheduled ? { text: String(status.numberMisscheduled), tone: "bad" } : ""],
      [t.strategy, strategyText(spec.updateStrategy)], [t.selector, code(selectorText(spec.selector ?? {}) ?? "")], [t.nodeSelector, chips(spec.template?.spec?.nodeSelector)],
    ]),
    ...templateSections(spec.template, metadata.namespace),
  ];
}

/** @param {KubeObject} object @returns {(Section | null)[]} */
export function jobSections({ metadata, spec = {}, status = {} }) {
  return [
    fieldsSection(t.status, [
      [t.succeeded, progress(status.succeeded, spec.completions ?? 1)], [t.active, status.active ?? 0],
      [t.failed, status.failed ? { text: String(status.failed), tone: "bad" } : 0], [t.parallelism, spec.parallelism], [t.backoffLimit, spec.backoffLimit],
      [t.suspended, spec.suspend ? { text: t.yes, tone: "waiting" } : ""], [t.started, since(status.startTime)], [t.finished, since(status.completionTime)],
      [t.deadline, spec.activeDeadlineSeconds === undefined ? "" : t.seconds(spec.activeDeadlineSeconds)],
    ]),
    ...templateSections(spec.template, metadata.namespace),
  ];
}

/** @param {KubeObject} object @returns {(Section | null)[]} */
export function cronJobSections({ metadata, spec = {}, status = {} }) {
  return [
    fieldsSection(t.status, [
      [t.schedule, code(spec.schedule)], [t.timeZone, spec.timeZone], [t.suspended, spec.suspend ? { text: t.yes, tone: "waiting" } : ""],
      [t.concurrency, spec.concurrencyPolicy], [t.lastSchedule, since(status.lastScheduleTime)], [t.lastSuccess, since(status.lastSuccessfulTime)],
      [t.active, listOf(status.active).map((one) => link("batch/v1", "Job", one.name, metadata.namespace))],
    ]),
    ...templateSections(spec.jobTemplate?.spec?.template, metadata.namespace),
  ];
}
