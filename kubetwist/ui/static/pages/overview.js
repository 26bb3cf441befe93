// The start page: what is wrong, warning events, counts of objects, and a few numbers about the server.

import { FiguresView } from "../components/figures.js";
import { grow } from "../components/keyedrows.js";
import { ProblemsView } from "../components/problemsview.js";
import { WarningsView } from "../components/warningsview.js";
import * as api from "../core/api.js";
import { button, frame, h, loadStyle } from "../core/dom.js";
import { listAddress } from "../lib/addresses.js";
import { pathOf } from "../lib/resources.js";
import { texts } from "../lib/texts.js";

const t = texts.start;
const COUNTED = ["pods", "deployments", "services", "configmaps", "nodes", "namespaces", "customresourcedefinitions", "events"];
const METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";
// Intervals in milliseconds.
const INTERVAL = 30_000, GROWTH = 1000;

/** The number of objects of a resource. */
class Card {
  /** @param {import("../lib/types.js").Resource} resource @param {string} namespace @param {AbortSignal} signal */
  constructor(resource, namespace, signal) {
    this.path = `${pathOf(resource, resource.namespaced ? namespace : "")}?limit=1`;
    this.signal = signal;
    this.refused = false;
    this.count = h("strong", null, "…");
    this.element = h("a", { class: "card", href: listAddress(resource) }, this.count, " ", h("small", null, resource.resource));
  }

  /** Read the number; the card is removed if the user may not list the objects. */
  async read() {
    if (this.refused) return;
    try {
      const list = await api.json(this.path, { accept: METADATA, signal: this.signal });
      this.count.textContent = String((list.items || []).length + (list.metadata.remainingItemCount || 0));
    } catch (/** @type {any} */ error) {
      if (this.signal.aborted) return;
      this.refused = error.code === 403;
      if (this.refused) this.element.remove();
      else this.count.textContent = "?";
    }
  }
}

/** Wait until the page is visible, or the signal is aborted. @param {AbortSignal} signal @returns {Promise<void>} */
const visible = (signal) => new Promise((done) => {
  const check = () => {
    if (document.hidden && !signal.aborted) return;
    document.removeEventListener("visibilitychange", check);
    done();
  };
  document.addEventListener("visibilitychange", check);
  signal.addEventListener("abort", check);
  check();
});

/**
 * @param {string} namespace "" for all.
 * @param {() => void} choose Asks for another namespace.
 * @returns {Promise<import("../lib/types.js").View>}
 */
export async function overview(namespace, choose) {
  const stop = new AbortController(), { signal } = stop;
  await loadStyle("start");
  const version = h("span", { class: "quiet" });
  api.json("/version", { signal }).then((found) => { version.textContent = `${found.gitVersion}, ${found.platform}`; }, () => {});
  const cards = COUNTED.flatMap((name) => api.resources().find((one) => one.resource === name) || []).map((one) => new Card(one, namespace, signal));
  const counts = h("nav", { class: "counts", "aria-label": t.counts }, cards.map(({ element }) => element));
  const nothing = h("div");
  const problems = new ProblemsView(namespace, signal, () => read()), warnings = new WarningsView(namespace, signal), figures = new FiguresView(signal);
  const page = h("div", { class: "page start", tabindex: "0", role: "region", "aria-label": texts.overview }, nothing, counts, figures.element, problems.element, warnings.element,
    h("p", { class: "quiet keys" }, t.hint.map(([keys, meaning]) => h("span", null, keys.split(" ").map((one) => [h("kbd", null, one), " "]), meaning))));

  const read = async () => {
    await Promise.all([...cards.map((card) => card.read()), figures.read(), problems.check()]);
    counts.hidden = cards.every((card) => card.refused);
    const refused = counts.hidden && problems.refused;
    if (refused && !nothing.firstChild) nothing.append(h("p", { class: "quiet" }, namespace ? texts.namespaces.nothingHere(namespace) : texts.namespaces.nothing), button(texts.namespaces.choose, choose, { class: "main", id: "choose-namespace" }));
    nothing.hidden = !refused;
    warnings.draw();
  };
  (async () => {
    while (!signal.aborted) {
      await visible(signal);
      if (signal.aborted) return;
      await read();
      await api.pause(INTERVAL, signal);
    }
  })();
  const timer = setInterval(() => { if (!document.hidden) grow(page); }, GROWTH);
  const element = frame([h("h1", null, namespace ? texts.oneNamespace(namespace) : texts.allNamespaces), version], page);
  return { element, title: "", close: () => { stop.abort(); clearInterval(timer); } };
}
