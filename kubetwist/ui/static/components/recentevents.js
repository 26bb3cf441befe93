// The newest events about an object, as they happen.

import { EventFeed } from "../core/eventfeed.js";
import { h, replace } from "../core/dom.js";
import { objectAddress } from "../lib/addresses.js";
import { age } from "../lib/durations.js";
import { texts } from "../lib/texts.js";
import { timeOf } from "../lib/warnings.js";
import { plainTable } from "./sections.js";

const t = texts.related;
const SHOWN = 8;

/** @param {any} event */
function timeElement(event) {
  const time = timeOf(event);
  return Number.isNaN(time) ? "" : h("time", { datetime: new Date(time).toISOString() }, age(time));
}

export class RecentEvents {
  /** @param {import("../lib/types.js").Target} target @param {AbortSignal} signal */
  constructor({ resource, namespace, name }, signal) {
    this.namespace = namespace;
    this.signal = signal;
    this.body = h("div");
    this.element = h("section", { class: "section", id: "recent-events", hidden: true }, h("h2", null, h("a", { href: objectAddress(resource, namespace, name, "events") }, t.events)), this.body);
    this.uid = "";
    /** Ends the watch of an object that was replaced by another one of its name. */
    this.stop = new AbortController();
  }

  /** Follow the events about an object. @param {import("../lib/types.js").KubeObject} object */
  update({ metadata }) {
    if (metadata.uid === this.uid) return;
    this.uid = metadata.uid;
    this.stop.abort();
    this.stop = new AbortController();
    const feed = new EventFeed(this.namespace, `involvedObject.uid=${metadata.uid}`, () => this.draw(feed), AbortSignal.any([this.signal, this.stop.signal]));
    feed.run();
  }

  /** @param {EventFeed} feed */
  draw(feed) {
    const shown = [...feed.events.values()].sort((a, b) => (timeOf(b) || 0) - (timeOf(a) || 0)).slice(0, SHOWN);
    const failed = feed.error && !feed.read;
    this.element.hidden = !shown.length && !failed;
    replace(this.body, failed ? h("p", { class: "quiet" }, t.notReadable(t.events, feed.error.message)) : plainTable(t.eventColumns, shown.map((one) => [
      h("span", { class: one.type === "Warning" ? "bad" : "" }, String(one.type ?? "")), String(one.reason ?? ""), timeElement(one), String(one.message ?? ""),
    ])));
  }
}
