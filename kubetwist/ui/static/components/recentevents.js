// The newest events about an object.

import * as api from "../core/api.js";
import { h, replace } from "../core/dom.js";
import { objectAddress } from "../lib/addresses.js";
import { age } from "../lib/durations.js";
import { pathOf } from "../lib/resources.js";
import { texts } from "../lib/texts.js";
import { plainTable } from "./sections.js";

const t = texts.related;
const SHOWN = 8, MAX_LISTED = 200;
// The least interval in milliseconds between two requests.
const INTERVAL = 5000;

/** @param {any} event */
const timeOf = ({ series, lastTimestamp, eventTime, metadata }) => Date.parse(series?.lastObservedTime ?? lastTimestamp ?? eventTime ?? metadata.creationTimestamp);

export class RecentEvents {
  /** @param {import("../lib/types.js").Target} target @param {AbortSignal} signal */
  constructor({ resource, namespace, name }, signal) {
    this.address = objectAddress(resource, namespace, name, "events");
    this.namespace = namespace;
    this.signal = signal;
    this.element = h("section", { class: "section", id: "recent-events", hidden: true });
    this.version = "";
    this.wanted = "";
    this.reading = false;
  }

  /** Read the events again if the object has changed. @param {import("../lib/types.js").KubeObject} object */
  async update({ metadata }) {
    this.wanted = metadata.resourceVersion ?? "";
    if (this.reading) return;
    this.reading = true;
    while (this.wanted !== this.version && !this.signal.aborted) {
      this.version = this.wanted;
      if (!(await this.read(metadata.uid))) return;
      await api.pause(INTERVAL, this.signal);
    }
    this.reading = false;
  }

  /** @param {string} uid Returns whether to read them again later. */
  async read(uid) {
    const events = api.resourceOf("", "events");
    if (!events) return false;
    const query = new URLSearchParams({ fieldSelector: `involvedObject.uid=${uid}`, limit: String(MAX_LISTED) });
    try {
      const { items = [] } = await api.json(`${pathOf(events, this.namespace)}?${query}`, { signal: this.signal });
      const shown = items.sort((/** @type {any} */ a, /** @type {any} */ b) => timeOf(b) - timeOf(a)).slice(0, SHOWN);
      this.element.hidden = !shown.length;
      replace(this.element, h("h2", null, h("a", { href: this.address }, t.events)), plainTable(t.eventColumns, shown.map((/** @type {any} */ one) => [
        h("span", { class: one.type === "Warning" ? "bad" : "" }, String(one.type ?? "")), String(one.reason ?? ""), Number.isNaN(timeOf(one)) ? "" : age(timeOf(one)), String(one.message ?? ""),
      ])));
    } catch (/** @type {any} */ error) {
      if (this.signal.aborted) return false;
      this.element.hidden = false;
      replace(this.element, h("p", { class: "quiet" }, t.notReadable(t.events, error.message)));
      return ![401, 403].includes(error.code);
    }
    return true;
  }
}
