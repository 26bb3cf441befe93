// A few numbers about the server, from its history.

import * as api from "../core/api.js";
import { h, replace } from "../core/dom.js";
import { shortNumber, unitOf } from "../lib/plots.js";
import { texts } from "../lib/texts.js";

const t = texts.start;
/** The names and labels of series, their title and quantity. @type {{ title: string, name: string, quantile?: string, quantity: import("../lib/plots.js").Quantity }[]} */
const FIGURES = [
  { title: t.requests, name: "verbs", quantity: "rate" }, { title: t.latency, name: "latency", quantile: "0.99", quantity: "seconds" },
  { title: t.loop, name: "loop", quantile: "0.99", quantity: "seconds" }, { title: t.memory, name: "memory", quantity: "bytes" },
];
// How many seconds before now the first sample may be.
const RECENT = 30;

export class FiguresView {
  /** @param {AbortSignal} signal */
  constructor(signal) {
    this.signal = signal;
    this.element = h("a", { class: "figures", id: "figures", href: "#/plots", title: texts.plots, hidden: true });
    this.since = Date.now() / 1000 - RECENT;
    this.refused = false;
  }

  /** Read the last sample. */
  async read() {
    if (this.refused) return;
    try {
      const { times, series } = await api.json(`/ui/history?since=${this.since}`, { signal: this.signal });
      // A browser whose clock is ahead reads all samples once.
      this.since = times.length ? times.at(-1) - 1 : 0;
      if (!times.length) return;
      this.element.hidden = false;
      replace(this.element, FIGURES.map((figure) => this.figure(figure, series)));
    } catch (/** @type {any} */ error) {
      this.refused = [403, 404].includes(error.code);
      if (this.refused) this.element.hidden = true;
    }
  }

  /** @param {typeof FIGURES[0]} figure @param {import("../lib/plots.js").Series[]} series */
  figure({ title, name, quantile, quantity }, series) {
    const values = series.filter((one) => one.name === name && (!quantile || one.labels.quantile === quantile)).map((one) => one.values.at(-1)).filter((one) => typeof one === "number");
    const value = values.length ? values.reduce((sum, one) => sum + one, 0) : null, { factor, label } = unitOf(quantity, value ?? 0);
    return h("span", null, h("strong", null, `${shortNumber(value === null ? null : value * factor)}${label.startsWith("/") ? label : ` ${label}`}`), " ", h("small", null, title));
  }
}
