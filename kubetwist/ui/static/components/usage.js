// Bars of usage beside requests and limits.

import * as api from "../core/api.js";
import { h, replace, svg } from "../core/dom.js";
import { pathOf } from "../lib/resources.js";
import { texts } from "../lib/texts.js";
import { barOf, metricsQuery, nodeUsage, podUsage, usageText } from "../lib/usage.js";

/** @typedef {import("../lib/types.js").KubeObject} KubeObject */
/** @typedef {import("../lib/usage.js").Usage} Usage */

const t = texts.describe;
// Metrics are measured about every 15 seconds.
const INTERVAL = 15_000;
const WIDTH = 240, HEIGHT = 10;

/** @param {Usage} usage */
function bar(usage) {
  const { used, request, limit, tone } = barOf(usage);
  const mark = (/** @type {number} */ part, /** @type {string} */ name) => (part > 0 ? svg("line", { class: name, x1: Math.min(part * WIDTH, WIDTH - 1), x2: Math.min(part * WIDTH, WIDTH - 1), y1: 0, y2: HEIGHT }) : null);
  return svg("svg", { class: "usage", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: "track", width: WIDTH, height: HEIGHT, rx: 3 }), svg("rect", { class: `used ${tone}`, width: used * WIDTH, height: HEIGHT, rx: 3 }), mark(request, "request"), mark(limit, "limit"));
}

/**
 * Return a table of usages with bars.
 *
 * @param {Usage[]} usages
 */
export const usageTable = (usages) => h("table", { class: "plain fit usages" }, h("tbody", null, usages.map((usage, index) => h("tr", null,
  h("th", { scope: "row" }, usages[index - 1]?.name === usage.name ? "" : usage.name), h("td", null, usage.resource), h("td", null, bar(usage)), h("td", null, usageText(usage))))));

/** The section with the usage of an object, which is read again from time to time. */
export class UsageView {
  /** @param {AbortSignal} signal */
  constructor(signal) {
    this.signal = signal;
    this.element = h("section", { class: "section", id: "usage", hidden: true });
    /** @type {KubeObject | null} */
    this.object = null;
  }

  /** @param {KubeObject} object */
  update(object) {
    const first = !this.object;
    this.object = object;
    if (first && metricsQuery(object)) this.run();
  }

  async run() {
    while (!this.signal.aborted && this.object) {
      try {
        if (!document.hidden) this.show(await this.read(this.object));
      } catch (/** @type {any} */ error) {
        if (this.signal.aborted) return;
        // Without metrics there are none to show; they may be there later.
        this.show([]);
        if ([401, 403].includes(error.code)) return;
      }
      await api.pause(INTERVAL, this.signal);
    }
  }

  /** @param {KubeObject} object @returns {Promise<Usage[]>} */
  async read(object) {
    const query = metricsQuery(object), { signal } = this;
    if (!query) return [];
    const served = api.resourceOf("metrics.k8s.io", query.collection), { namespace } = object.metadata;
    if (query.collection === "nodes") {
      const selector = new URLSearchParams({ fieldSelector: `spec.nodeName=${query.name}` });
      const [metrics, pods] = await Promise.all([
        served ? api.json(pathOf(served, "", query.name), { signal }).catch(() => null) : null, api.json(`/api/v1/pods?${selector}`, { signal }),
      ]);
      return nodeUsage(object, metrics, pods.items ?? []);
    }
    if (!served) return [];
    if (query.name) return podUsage(object, [await api.json(pathOf(served, namespace, query.name), { signal })]);
    const list = await api.json(`${pathOf(served, namespace)}?${new URLSearchParams({ labelSelector: query.labelSelector ?? "" })}`, { signal });
    return podUsage(object, list.items ?? []);
  }

  /** @param {Usage[]} usages */
  show(usages) {
    this.element.hidden = !usages.length;
    replace(this.element, h("h2", null, t.usage), usageTable(usages));
  }
}
