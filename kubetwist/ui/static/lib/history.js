// The rollout history of a Deployment, StatefulSet or DaemonSet, and the request that rolls back.

import { pathOf } from "./resources.js";
import { texts } from "./texts.js";

/** @typedef {import("./types.js").Resource} Resource */

/**
 * @typedef {object} Revision
 * @property {number} number
 * @property {string} name The name of the ReplicaSet or ControllerRevision.
 * @property {string[]} images
 * @property {string} created
 * @property {string} cause
 * @property {boolean} current
 * @property {any} template A PodTemplateSpec.
 */

const REVISION = "deployment.kubernetes.io/revision", CAUSE = "kubernetes.io/change-cause";

/**
 * Return where the revisions of an object are; null if it has none.
 *
 * @param {{ apiVersion: string, kind: string }} object
 */
export function historyResource({ apiVersion, kind }) {
  if (!apiVersion.startsWith("apps/")) return null;
  if (kind === "Deployment") return { group: "apps", resource: "replicasets" };
  return kind === "StatefulSet" || kind === "DaemonSet" ? { group: "apps", resource: "controllerrevisions" } : null;
}

/** @param {any} template */
const imagesOf = (template) => [...(template?.spec?.initContainers ?? []), ...(template?.spec?.containers ?? [])].map((container) => String(container.image));

/**
 * Return the revisions of an object, the newest first.
 *
 * @param {any} object
 * @param {any[]} items ReplicaSets or ControllerRevisions of the namespace.
 * @returns {Revision[]}
 */
export function revisionsOf(object, items) {
  const owned = items.filter((one) => (one.metadata.ownerReferences ?? []).some((/** @type {any} */ owner) => owner.uid === object.metadata.uid && owner.controller));
  const found = owned.map((one) => {
    const deployment = object.kind === "Deployment";
    const template = deployment ? one.spec?.template : one.data?.spec?.template;
    const number = deployment ? Number(one.metadata.annotations?.[REVISION] ?? 0) : Number(one.revision ?? 0);
    return { number, name: one.metadata.name, images: imagesOf(template), created: one.metadata.creationTimestamp, cause: one.metadata.annotations?.[CAUSE] ?? "", current: false, template };
  });
  found.sort((a, b) => b.number - a.number);
  if (found.length) found[0].current = true;
  return found;
}

/**
 * Return the action that makes a revision the newest, as `kubectl rollout undo --to-revision` does.
 *
 * @param {Revision} revision
 * @returns {import("./actionmodel.js").Action}
 */
export function undoAction(revision) {
  // The hash is of the ReplicaSet; `$patch` and $retainKeys are of stored ControllerRevisions.
  const { metadata = {}, spec } = revision.template ?? {};
  const { "pod-template-hash": hash, ...labels } = metadata.labels ?? {};
  const template = { metadata: { ...metadata, labels }, spec };
  return {
    id: "undo", label: texts.actions.undo, verb: "patch",
    request: (resource, object) => ({
      method: "PATCH", path: pathOf(resource, object.metadata.namespace, object.metadata.name), type: "application/json-patch+json",
      body: [{ op: "test", path: "/metadata/uid", value: object.metadata.uid }, { op: "replace", path: "/spec/template", value: template }],
    }),
    command: (resource, object) => ["kubectl", "rollout", "undo", `${resource.resource}.${resource.group}/${object.metadata.name}`, `--to-revision=${revision.number}`],
  };
}

