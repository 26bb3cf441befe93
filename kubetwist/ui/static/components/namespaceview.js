// What a namespace contains: counts of objects, quotas and limit ranges; and how many objects a definition has.

import * as api from "../core/api.js";
import { h, replace } from "../core/dom.js";
import { listAddress, objectAddress } from "../lib/addresses.js";
import { pathOf } from "../lib/resources.js";
import { texts } from "../lib/texts.js";
import { limitRows, quotaUsage } from "../lib/usage.js";
import { plainTable } from "./sections.js";
import { usageTable } from "./usage.js";

/** @typedef {import("../lib/types.js").Resource} Resource */

const t = texts.describe;
const COUNTED = [
  ["", "pods"], ["apps", "deployments"], ["apps", "statefulsets"], ["apps", "daemonsets"], ["batch", "jobs"], ["batch", "cronjobs"], ["", "services"], ["networking.k8s.io", "ingresses"],
  ["", "configmaps"], ["", "secrets"], ["", "persistentvolumeclaims"], ["", "serviceaccounts"],
];
const METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";

/** @param {Resource} resource @param {string} namespace @param {AbortSignal} signal */
function card(resource, namespace, signal) {
  const count = h("strong", null, "…");
  api.json(`${pathOf(resource, namespace)}?limit=1`, { accept: METADATA, signal }).then((list) => {
    count.textContent = String((list.items ?? []).length + (list.metadata?.remainingItemCount ?? 0));
  }, (error) => { if (!signal.aborted) count.textContent = error.code === 403 ? texts.notAllowed : "?"; });
  return h("a", { class: "card", href: listAddress(resource) }, count, h("small", null, resource.resource));
}

/** @param {Resource[]} resources @param {string} namespace @param {AbortSignal} signal */
const counts = (resources, namespace, signal) => h("section", { class: "section", id: "counts" }, h("h2", null, t.contents), h("div", { class: "cards" }, resources.map((one) => card(one, namespace, signal))));

/** @param {string} name @param {string} title @param {(items: any[]) => Element} show @param {string} namespace @param {AbortSignal} signal */
function listed(name, title, show, namespace, signal) {
  const resource = api.resourceOf("", name), place = h("section", { class: "section", id: name, hidden: true });
  if (!resource) return place;
  api.json(pathOf(resource, namespace), { signal }).then(({ items = [] }) => {
    if (!items.length) return;
    place.hidden = false;
    replace(place, h("h2", null, title), show(items), h("p", null, items.map((/** @type {any} */ { metadata }) => [h("a", { href: objectAddress(resource, namespace, metadata.name) }, metadata.name), " "])));
  }, (error) => {
    if (signal.aborted) return;
    place.hidden = false;
    replace(place, h("p", { class: "quiet" }, texts.related.notReadable(title, error.message)));
  });
  return place;
}

/**
 * Return what else the page of a namespace or definition shows; nothing for other objects.
 *
 * @param {any} object
 * @param {AbortSignal} signal
 * @returns {HTMLElement[]}
 */
export function contentsOf(object, signal) {
  const { apiVersion, kind, metadata, spec = {} } = object;
  if (apiVersion === "v1" && kind === "Namespace") {
    return [
      counts(COUNTED.flatMap(([group, name]) => api.resourceOf(group, name) ?? []), metadata.name, signal),
      listed("resourcequotas", t.quotas, (items) => usageTable(quotaUsage(items)), metadata.name, signal),
      listed("limitranges", t.limitRanges, (items) => plainTable(t.limitColumns, limitRows(items)), metadata.name, signal),
    ];
  }
  if (kind !== "CustomResourceDefinition") return [];
  const resource = api.resourceOf(spec.group, spec.names?.plural);
  return resource ? [counts([resource], "", signal)] : [];
}
