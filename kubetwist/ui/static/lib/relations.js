// Objects that are related to an object, and how they are found.

import { kindKey } from "./resources.js";
import { selectorText, selects, selectsByMap } from "./labelselectors.js";
import { texts } from "./texts.js";

/** @typedef {import("./types.js").KubeObject} KubeObject */
/** @typedef {import("./types.js").Meta} Meta */

/**
 * @typedef {object} LiveRelation A table of objects that is followed by a watch.
 * @property {string} title
 * @property {string} group
 * @property {string} resource
 * @property {string} [fieldSelector]
 * @property {string} [labelSelector]
 * @property {(meta: Meta) => boolean} [keep]
 */

/**
 * @typedef {object} ListedRelation Objects of the namespace that are read once.
 * @property {string} title
 * @property {string} group
 * @property {string} resource
 * @property {(object: any) => boolean} keep
 */

const t = texts.related;

/** @param {KubeObject} object @returns {(meta: Meta) => boolean} */
const ownedBy = ({ metadata: { uid } }) => (meta) => (meta.ownerReferences ?? []).some((owner) => owner.uid === uid);

/** @param {any} object @returns {any} The template of its pods; undefined without one. */
const templateOf = ({ spec }) => spec?.template ?? spec?.jobTemplate?.spec?.template;

/**
 * Return the tables of an object's page.
 *
 * @param {any} object
 * @returns {LiveRelation[]}
 */
export function liveRelations(object) {
  const { metadata, spec = {} } = object;
  /** @param {string | null} labelSelector @returns {LiveRelation[]} */
  const pods = (labelSelector) => (labelSelector ? [{ title: t.pods, group: "", resource: "pods", labelSelector, keep: undefined }] : []);
  switch (kindKey(object)) {
    case "apps/Deployment":
      return [{ title: t.replicaSets, group: "apps", resource: "replicasets", labelSelector: selectorText(spec.selector ?? {}) ?? "", keep: ownedBy(object) }, ...pods(selectorText(spec.selector ?? {}))];
    case "apps/ReplicaSet": case "apps/StatefulSet": case "apps/DaemonSet": case "batch/Job":
      return pods(selectorText(spec.selector ?? {})).map((one) => ({ ...one, keep: ownedBy(object) }));
    case "/ReplicationController": return pods(selectorText({ matchLabels: spec.selector ?? {} })).map((one) => ({ ...one, keep: ownedBy(object) }));
    case "batch/CronJob": return [{ title: t.jobs, group: "batch", resource: "jobs", keep: ownedBy(object) }];
    case "/Node": return [{ title: t.pods, group: "", resource: "pods", fieldSelector: `spec.nodeName=${metadata.name}` }];
    case "/Service": return [
      { title: t.endpoints, group: "discovery.k8s.io", resource: "endpointslices", labelSelector: `kubernetes.io/service-name=${metadata.name}` },
      ...pods(selectorText({ matchLabels: spec.selector ?? {} })),
    ];
    default: return [];
  }
}

/**
 * Return whether a pod uses an object: in volumes or variables, or as its account.
 *
 * @param {any} pod
 * @param {string} kind ConfigMap, Secret, PersistentVolumeClaim or ServiceAccount.
 * @param {string} name
 */
export function uses(pod, kind, name) {
  const spec = pod.spec ?? {};
  if (kind === "ServiceAccount") return spec.serviceAccountName === name;
  const sources = (/** @type {any} */ volume) => [volume, ...(volume.projected?.sources ?? [])];
  const inVolume = (/** @type {any} */ source) => ({
    ConfigMap: source.configMap?.name === name, Secret: (source.secret?.secretName ?? source.secret?.name) === name, PersistentVolumeClaim: source.persistentVolumeClaim?.claimName === name,
  })[kind];
  if ((spec.volumes ?? []).flatMap(sources).some(inVolume)) return true;
  if (kind === "Secret" && (spec.imagePullSecrets ?? []).some((/** @type {any} */ one) => one.name === name)) return true;
  const reference = { ConfigMap: ["configMapRef", "configMapKeyRef"], Secret: ["secretRef", "secretKeyRef"] }[kind];
  if (!reference) return false;
  return [...(spec.initContainers ?? []), ...(spec.containers ?? [])].some((container) =>
    (container.envFrom ?? []).some((/** @type {any} */ one) => one[reference[0]]?.name === name)
    || (container.env ?? []).some((/** @type {any} */ one) => one.valueFrom?.[reference[1]]?.name === name));
}

/**
 * Return whether an Ingress leads to a Service.
 *
 * @param {any} ingress
 * @param {string} name
 */
export function leadsTo({ spec = {} }, name) {
  const backends = [spec.defaultBackend, ...(spec.rules ?? []).flatMap((/** @type {any} */ rule) => (rule.http?.paths ?? []).map((/** @type {any} */ path) => path.backend))];
  return backends.some((backend) => backend?.service?.name === name);
}

/**
 * Return the objects to list for an object's page.
 *
 * @param {any} object
 * @returns {ListedRelation[]}
 */
export function listedRelations(object) {
  const { metadata, kind } = object;
  const key = kindKey(object);
  /** @param {string} title @param {(object: any) => boolean} keep @returns {ListedRelation} */
  const ingresses = (title, keep) => ({ title, group: "networking.k8s.io", resource: "ingresses", keep });
  if (["/ConfigMap", "/Secret", "/PersistentVolumeClaim", "/ServiceAccount"].includes(key)) {
    const inTLS = ingresses(t.ingressesWith, ({ spec }) => (spec?.tls ?? []).some((/** @type {any} */ one) => one.secretName === metadata.name));
    return [{ title: t.usedBy, group: "", resource: "pods", keep: (pod) => uses(pod, kind, metadata.name) }, ...(key === "/Secret" ? [inTLS] : [])];
  }
  if (key === "/Service") return [ingresses(t.ingresses, (one) => leadsTo(one, metadata.name))];
  const labels = key === "/Pod" ? metadata.labels : templateOf(object)?.metadata?.labels;
  if (!labels) return [];
  /** @type {ListedRelation[]} */
  const found = [
    { title: t.services, group: "", resource: "services", keep: ({ spec }) => selectsByMap(spec?.selector, labels) },
    { title: t.budgets, group: "policy", resource: "poddisruptionbudgets", keep: ({ spec }) => selects(spec?.selector ?? {}, labels) },
  ];
  if (key !== "/Pod") {
    const isTarget = (/** @type {any} */ one) => one?.kind === kind && one.name === metadata.name && String(one.apiVersion).split("/")[0] === object.apiVersion.split("/")[0];
    found.push({ title: t.autoscalers, group: "autoscaling", resource: "horizontalpodautoscalers", keep: ({ spec }) => isTarget(spec?.scaleTargetRef) });
  }
  return found;
}
