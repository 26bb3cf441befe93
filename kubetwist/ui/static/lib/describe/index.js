// The sections of the page of an object, by its kind.

import { autoscalerSections, claimSections, definitionSections, namespaceSections, nodeSections } from "./cluster.js";
import { conditionsSection, genericSections, metadataSection } from "./generic.js";
import { kindKey } from "../resources.js";
import { ingressSections, serviceSections } from "./network.js";
import { podSections } from "./pods.js";
import { cronJobSections, daemonSetSections, deploymentSections, jobSections, replicaSetSections, statefulSetSections } from "./workloads.js";

/** @typedef {import("../types.js").KubeObject} KubeObject */
/** @typedef {import("./model.js").Section} Section */

/**
 * By group and kind.
 *
 * @type {Record<string, (object: KubeObject) => (Section | null)[]>}
 */
const KINDS = {
  "/Pod": podSections,
  "/Node": nodeSections,
  "/Service": serviceSections,
  "/Namespace": namespaceSections,
  "/PersistentVolumeClaim": claimSections,
  "/ReplicationController": replicaSetSections,
  "/ConfigMap": () => [],
  "/Secret": () => [],
  "apps/Deployment": deploymentSections,
  "apps/ReplicaSet": replicaSetSections,
  "apps/StatefulSet": statefulSetSections,
  "apps/DaemonSet": daemonSetSections,
  "batch/Job": jobSections,
  "batch/CronJob": cronJobSections,
  "networking.k8s.io/Ingress": ingressSections,
  "autoscaling/HorizontalPodAutoscaler": autoscalerSections,
  "apiextensions.k8s.io/CustomResourceDefinition": definitionSections,
};

/**
 * Return the sections of an object.
 *
 * @param {KubeObject} object
 * @returns {Section[]}
 */
export function describe(object) {
  const key = kindKey(object);
  const special = Object.hasOwn(KINDS, key) ? KINDS[key] : genericSections;
  const [first, ...rest] = special(object);
  return [first, conditionsSection(object), ...rest, metadataSection(object)].flatMap((section) => section ?? []);
}
