// Warning events of the last hour, grouped, as they happen.

import { resourceOfKind } from "../core/api.js";
import { h, replace } from "../core/dom.js";
import { EventFeed } from "../core/eventfeed.js";
import { objectAddress } from "../lib/addresses.js";
import { grouped } from "../lib/warnings.js";
import { texts } from "../lib/texts.js";
import { KeyedTable, since } from "./keyedrows.js";

const t = texts.start;
const HOUR = 3600 * 1000;
const SHOWN = 50;

export class WarningsView {
  /** @param {string} namespace "" for all. @param {AbortSignal} signal */
  constructor(namespace, signal) {
    this.namespace = namespace;
    this.feed = new EventFeed(namespace, "type=Warning", () => this.draw(), signal);
    this.count = h("span", { class: "count" });
    this.note = h("div", { class: "quiet" });
    this.table = new KeyedTable(t.warningColumns, t.warnings);
    this.element = h("section", { class: "section", id: "warnings", hidden: true }, h("h2", null, t.warnings, " ", this.count), this.note, this.table.element);
    this.feed.run();
  }

  /** Show the events again, without those that have become too old. */
  draw() {
    const { feed } = this;
    if (!feed.read && !feed.error) return;
    this.element.hidden = !feed.read && feed.error?.code === 403;
    const all = grouped(feed.events.values(), Date.now() - HOUR), shown = all.slice(0, SHOWN);
    this.count.textContent = feed.read ? String(all.length) : "";
    this.table.element.hidden = !all.length;
    this.table.show(shown.map((one) => ({ key: one.key, signature: JSON.stringify([one.count, one.last, one.message]), cells: this.cells(one) })));
    replace(this.note, feed.error ? h("p", null, feed.read && feed.error.code === 403 ? t.notFollowed : feed.error.message) : null,
      feed.read && !all.length ? h("p", null, t.noWarnings) : null,
      feed.truncated ? h("p", null, t.firstEvents(feed.events.size)) : all.length > SHOWN ? h("p", null, texts.someOf(SHOWN, all.length)) : null);
  }

  /** @param {import("../lib/warnings.js").Warning} warning */
  cells({ apiVersion, kind, namespace, name, reason, count, last, message }) {
    const resource = resourceOfKind(apiVersion, kind), title = `${kind} ${name}`;
    return [[resource && name ? h("a", { href: objectAddress(resource, resource.namespaced ? namespace : "", name) }, title) : title, !this.namespace && namespace ? h("small", null, ` in ${namespace}`) : null],
      h("span", { class: "bad" }, reason), String(count), since(last), message];
  }
}
