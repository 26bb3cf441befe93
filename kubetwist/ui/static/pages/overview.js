// The first view: counts of objects, and the keys.

import * as api from "../core/api.js";
import { button, frame, h } from "../core/dom.js";
import { listAddress } from "../lib/addresses.js";
import { pathOf } from "../lib/resources.js";
import { texts } from "../lib/texts.js";

const COUNTED = ["pods", "deployments", "services", "configmaps", "nodes", "namespaces", "customresourcedefinitions", "events"];
const METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";

/**
 * Return a card with the number of objects; it is removed if the user may not list them.
 *
 * @param {import("../lib/types.js").Resource} resource
 * @param {string} namespace
 * @param {() => void} removed
 */
function card(resource, namespace, removed) {
  const count = h("strong", null, "…");
  const element = h("a", { class: "card", href: listAddress(resource) }, count, h("small", null, resource.resource));
  api.json(`${pathOf(resource, resource.namespaced ? namespace : "")}?limit=1`, { accept: METADATA }).then((list) => {
    count.textContent = String((list.items || []).length + (list.metadata.remainingItemCount || 0));
  }, (error) => {
    if (error.code !== 403) { count.textContent = "?"; return; }
    element.remove();
    removed();
  });
  return element;
}

/**
 * @param {string} namespace "" for all.
 * @param {() => void} choose Asks for another namespace.
 * @returns {import("../lib/types.js").View}
 */
export function overview(namespace, choose) {
  const version = h("span", { class: "quiet" });
  api.json("/version").then((found) => { version.textContent = `${found.gitVersion}, ${found.platform}`; }, () => {});
  const cards = h("div", { class: "cards" });
  const removed = () => {
    if (cards.firstChild) return;
    cards.replaceWith(h("p", { class: "quiet" }, namespace ? texts.namespaces.nothingHere(namespace) : texts.namespaces.nothing), h("div", null, button(texts.namespaces.choose, choose, { class: "main", id: "choose-namespace" })));
  };
  cards.append(...COUNTED.flatMap((name) => api.resources().find((one) => one.resource === name) || []).map((one) => card(one, namespace, removed)));
  const element = frame([h("h1", null, namespace ? texts.oneNamespace(namespace) : texts.allNamespaces), version], h("div", { class: "page" },
    cards,
    h("h2", null, texts.keysHeading),
    h("p", { class: "quiet keys" }, texts.keys.map(([keys, meaning]) => h("span", null, keys.split(" ").map((one) => [h("kbd", null, one), " "]), meaning)))));
  return { element, title: "" };
}
