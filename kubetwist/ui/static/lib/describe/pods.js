// Pods and templates of pods: containers with their states and resources, and volumes.

import { texts } from "../texts.js";
import { chips, code, fieldsSection, link, listOf, progress, since, state, tableSection } from "./model.js";

/** @typedef {import("../types.js").KubeObject} KubeObject */
/** @typedef {import("./model.js").Rich} Rich */
/** @typedef {import("./model.js").Section} Section */
/** @typedef {import("./model.js").Value} Value */

const t = texts.describe;

/**
 * Return the state of a container, as `kubectl describe` names it.
 *
 * @param {any} status A ContainerStatus; undefined before the kubelet has written one.
 * @returns {Rich}
 */
export function containerState(status) {
  const { waiting, running, terminated } = status?.state ?? {};
  if (running) return { text: t.running, tone: status.ready === false ? "waiting" : "good", title: running.startedAt };
  if (terminated) {
    const reason = terminated.reason || (terminated.signal ? t.signal(terminated.signal) : t.exitCode(terminated.exitCode));
    return { text: terminated.exitCode ? `${reason} (${terminated.exitCode})` : reason, tone: terminated.exitCode ? "bad" : "quiet", title: terminated.message };
  }
  const reason = waiting?.reason || t.waiting;
  return { text: reason, tone: /BackOff|Err|Error|Invalid/.test(reason) ? "bad" : "waiting", title: waiting?.message };
}

/** @param {any} resources @param {string} name @returns {string} Request and limit: "100m / 1". */
const amounts = (resources, name) => {
  const request = resources?.requests?.[name], limit = resources?.limits?.[name];
  return request || limit ? `${request ?? "–"} / ${limit ?? "–"}` : "";
};

/**
 * Return a probe in one line, as `kubectl describe` does.
 *
 * @param {any} probe
 */
export function probeText(probe) {
  if (!probe) return "";
  const { httpGet, tcpSocket, grpc, exec } = probe;
  let what = t.unknownProbe;
  if (httpGet) what = `${(httpGet.scheme || "HTTP").toLowerCase()} ${httpGet.host ?? ""}:${httpGet.port}${httpGet.path || "/"}`;
  else if (tcpSocket) what = `tcp ${tcpSocket.host ?? ""}:${tcpSocket.port}`;
  else if (grpc) what = `grpc :${grpc.port} ${grpc.service ?? ""}`.trim();
  else if (exec) what = `exec ${listOfTexts(exec.command).join(" ")}`;
  return t.probe(what, probe.initialDelaySeconds ?? 0, probe.periodSeconds ?? 10, probe.timeoutSeconds ?? 1, probe.failureThreshold ?? 3);
}

/** @param {any} values @returns {string[]} */
const listOfTexts = (values) => (Array.isArray(values) ? values.map(String) : []);

/** @param {any} spec A PodSpec. @returns {{ container: any, kind: string }[]} The containers, and what kind they are; "" for the usual one. */
export const containersOf = (spec) => [
  ...listOf(spec?.initContainers).map((container) => ({ container, kind: container.restartPolicy === "Always" ? t.sidecar : t.init })),
  ...listOf(spec?.containers).map((container) => ({ container, kind: "" })),
  ...listOf(spec?.ephemeralContainers).map((container) => ({ container, kind: t.ephemeral })),
];

/** @param {{ container: any, kind: string }} found */
const nameOf = ({ container, kind }) => (kind ? `${container.name} (${kind})` : container.name);

/** @param {any} container */
const probesOf = (container) => ["startupProbe", "readinessProbe", "livenessProbe"].filter((name) => container[name])
  .map((name) => `${t.probeNames[name]}: ${probeText(container[name])}`);

/** @param {any} container */
const portsOf = (container) => listOf(container.ports).map((port) => `${port.containerPort}${port.protocol && port.protocol !== "TCP" ? `/${port.protocol}` : ""}${port.name ? ` ${port.name}` : ""}`);

/**
 * Return the containers of a pod with their states.
 *
 * @param {any} spec
 * @param {any} status
 */
function containersSection(spec, status) {
  const states = new Map([...listOf(status?.initContainerStatuses), ...listOf(status?.containerStatuses), ...listOf(status?.ephemeralContainerStatuses)].map((one) => [one.name, one]));
  return tableSection(t.containers, t.containerColumns, containersOf(spec).map((one) => {
    const { container } = one, found = states.get(container.name);
    return [
      nameOf(one), code(container.image), containerState(found), found?.restartCount ?? 0,
      lastEnd(found), amounts(container.resources, "cpu"), amounts(container.resources, "memory"), portsOf(container), probesOf(container),
    ];
  }));
}

/** @param {any} status @returns {Value} How the container ended the last time. */
function lastEnd(status) {
  const terminated = status?.lastState?.terminated;
  if (!terminated) return "";
  return { text: terminated.reason || t.exitCode(terminated.exitCode), tone: terminated.exitCode ? "bad" : "quiet", title: terminated.message || terminated.finishedAt };
}

/** @param {any} spec A PodSpec. @param {string | undefined} namespace */
export function volumesSection(spec, namespace) {
  /** @param {any} volume @returns {[string, Value]} */
  const source = (volume) => {
    if (volume.configMap) return ["ConfigMap", link("v1", "ConfigMap", volume.configMap.name, namespace)];
    if (volume.secret) return ["Secret", link("v1", "Secret", volume.secret.secretName, namespace)];
    if (volume.persistentVolumeClaim) return ["PersistentVolumeClaim", link("v1", "PersistentVolumeClaim", volume.persistentVolumeClaim.claimName, namespace)];
    const kind = Object.keys(volume).find((name) => name !== "name") ?? "";
    const value = volume[kind] ?? {};
    return [kind, value.path ?? value.medium ?? value.driver ?? value.claimName ?? ""];
  };
  const mounts = (/** @type {string} */ name) => containersOf(spec).flatMap(({ container }) =>
    listOf(container.volumeMounts).filter((mount) => mount.name === name).map((mount) => `${container.name}: ${mount.mountPath}${mount.readOnly ? ` (${t.readOnly})` : ""}`));
  return tableSection(t.volumes, t.volumeColumns, listOf(spec?.volumes).map((volume) => [volume.name, ...source(volume), mounts(volume.name)]));
}

/** @param {KubeObject} pod @returns {(Section | null)[]} */
export function podSections({ metadata, spec = {}, status = {} }) {
  const ready = listOf(status.containerStatuses).filter((one) => one.ready).length;
  return [
    fieldsSection(t.status, [
      [t.phase, state(metadata.deletionTimestamp ? "Terminating" : status.reason || status.phase)],
      [t.message, status.message],
      [t.ready, progress(ready, listOf(spec.containers).length)],
      [t.node, link("v1", "Node", spec.nodeName)],
      [t.podIPs, listOf(status.podIPs).map((one) => one.ip)],
      [t.started, since(status.startTime)],
      [t.serviceAccount, link("v1", "ServiceAccount", spec.serviceAccountName, metadata.namespace)],
      [t.qosClass, status.qosClass],
      [t.priority, spec.priorityClassName ? `${spec.priorityClassName} (${spec.priority})` : spec.priority],
      [t.restartPolicy, spec.restartPolicy],
      [t.nodeSelector, chips(spec.nodeSelector)],
    ]),
    containersSection(spec, status),
    volumesSection(spec, metadata.namespace),
  ];
}

/** @param {any} template A PodTemplateSpec. @param {string | undefined} namespace @returns {(Section | null)[]} */
export function templateSections(template, namespace) {
  const spec = template?.spec ?? {};
  return [
    tableSection(t.template, t.templateColumns, containersOf(spec).map(({ container, kind }) => [
      nameOf({ container, kind }), code(container.image), amounts(container.resources, "cpu"), amounts(container.resources, "memory"), portsOf(container), probesOf(container),
    ])),
    volumesSection(spec, namespace),
  ];
}
