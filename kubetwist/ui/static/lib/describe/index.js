// The sections of the page of an object, by its kind.

import { certificateSections, signingRequestSections } from "./certificates.js";
import { autoscalerSections, budgetSections, claimSections, dataSections, definitionSections, namespaceSections, nodeSections, serviceAccountSections } from "./cluster.js";
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
  "/ServiceAccount": serviceAccountSections,
  "/PersistentVolumeClaim": claimSections,
  "/ReplicationController": replicaSetSections,
  "/ConfigMap": dataSections,
  "/Secret": dataSections,
  "apps/Deployment": deploymentSections,
  "apps/ReplicaSet": replicaSetSections,
  "apps/StatefulSet": statefulSetSections,
  "apps/DaemonSet": daemonSetSections,
  "batch/Job": jobSections,
  "batch/CronJob": cronJobSections,
  "networking.k8s.io/Ingress": ingressSections,
  "autoscaling/HorizontalPodAutoscaler": autoscalerSections,
  "policy/PodDisruptionBudget": budgetSections,
  "certificates.k8s.io/CertificateSigningRequest": signingRequestSections,
  "apiextensions.k8s.io/CustomResourceDefinition": definitionSections,
};

/**
 * Return whether a kind has no sections of its own.
 *
 * @param {{ apiVersion: string, kind: string }} object
 */
export const isGeneric = (object) => !Object.hasOwn(KINDS, kindKey(object));

/**
 * Return the sections of an object.
 *
 * @param {KubeObject} object
 * @param {import("./generic.js").Context} [context] What else is known of a custom resource.
 * @param {number} [now] Milliseconds since 1970.
 * @returns {Section[]}
 */
export function describe(object, context = {}, now = Date.now()) {
  const [first, ...rest] = isGeneric(object) ? genericSections(object, context) : KINDS[kindKey(object)](object);
  return [first, conditionsSection(object), ...rest, ...certificateSections(object, now), metadataSection(object)].flatMap((section) => section ?? []);
}
