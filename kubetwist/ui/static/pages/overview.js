// The first view: counts of objects, and the keys.

import * as api from "../core/api.js";
import { frame, h } from "../core/dom.js";
import { listAddress } from "../lib/addresses.js";
import { pathOf } from "../lib/resources.js";
import { texts } from "../lib/texts.js";

const COUNTED = ["pods", "deployments", "services", "configmaps", "nodes", "namespaces", "customresourcedefinitions", "events"];
const METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";

/** @param {import("../lib/types.js").Resource} resource @param {string} namespace */
function card(resource, namespace) {
  const count = h("strong", null, "…");
  api.json(`${pathOf(resource, resource.namespaced ? namespace : "")}?limit=1`, { accept: METADATA }).then((list) => {
    count.textContent = String((list.items || []).length + (list.metadata.remainingItemCount || 0));
  }, (error) => { count.textContent = error.code === 403 ? texts.notAllowed : "?"; });
  return h("a", { class: "card", href: listAddress(resource) }, count, h("small", null, resource.resource));
}

/**
 * @param {string} namespace "" for all.
 * @returns {import("../lib/types.js").View}
 */
export function overview(namespace) {
  const version = h("span", { class: "quiet" });
  api.json("/version").then((found) => { version.textContent = `${found.gitVersion}, ${found.platform}`; }, () => {});
  const cards = COUNTED.flatMap((name) => api.resources().find((one) => one.resource === name) || []);
  const element = frame([h("h1", null, namespace ? texts.oneNamespace(namespace) : texts.allNamespaces), version], h("div", { class: "page" },
    h("div", { class: "cards" }, cards.map((one) => card(one, namespace))),
    h("h2", null, texts.keysHeading),
    h("p", { class: "quiet keys" }, texts.keys.map(([keys, meaning]) => h("span", null, keys.split(" ").map((one) => [h("kbd", null, one), " "]), meaning)))));
  return { element, title: "" };
}
