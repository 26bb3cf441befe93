// The overview of an object: what it is, how it is, and what belongs to it.

import { ActionBar } from "../components/actionbar.js";
import { openAction } from "../components/actiondialog.js";
import { contextOf } from "../components/customview.js";
import { dataSection } from "../components/dataview.js";
import { contentsOf } from "../components/namespaceview.js";
import { RecentEvents } from "../components/recentevents.js";
import { plainTable, sectionElement } from "../components/sections.js";
import { TableView } from "../components/table.js";
import { UsageView } from "../components/usage.js";
import { webSection } from "../components/weblinks.js";
import * as api from "../core/api.js";
import { button, h, loadStyle, problem, replace } from "../core/dom.js";
import { objectAddress } from "../lib/addresses.js";
import { describe, isGeneric } from "../lib/describe/index.js";
import { age } from "../lib/durations.js";
import { historyResource, revisionsOf, undoAction } from "../lib/history.js";
import { listedRelations, liveRelations } from "../lib/relations.js";
import { pathOf, questionOf } from "../lib/resources.js";
import { texts } from "../lib/texts.js";

/** @typedef {import("../lib/types.js").KubeObject} KubeObject */
/** @typedef {import("../lib/types.js").Resource} Resource */
/** @typedef {import("../lib/types.js").Target} Target */
/** @typedef {import("../lib/types.js").View} View */

const t = texts.related;
// Objects that are read to find related ones.
const MAX_LISTED = 500;
const WITH_DATA = ["ConfigMap", "Secret"];

/**
 * Show the overview, and follow the object.
 *
 * @param {Target} target
 * @param {HTMLElement} body
 * @param {View} view
 * @param {HTMLElement} actions Where the actions go.
 */
export function detailsTab(target, body, view, actions) {
  new Details(target, body, view, actions).run();
}

class Details {
  /** @param {Target} target @param {HTMLElement} body @param {View} view @param {HTMLElement} actions */
  constructor(target, body, view, actions) {
    this.target = target;
    this.stop = new AbortController();
    loadStyle("details");
    this.bar = new ActionBar(target.resource);
    this.usage = new UsageView(this.stop.signal);
    this.events = new RecentEvents(target, this.stop.signal);
    /** What else is known of a custom resource. @type {import("../lib/describe/generic.js").Context} */
    this.context = {};
    /** @type {any} */
    this.object = null;
    this.reading = false;
    /** The keys of a Secret whose values are shown. @type {Set<string>} */
    this.shown = new Set();
    this.notes = h("div", { "aria-live": "polite" });
    this.sections = h("div", { class: "sections" });
    this.related = h("div", { class: "sections" });
    /** @type {TableView[]} */
    this.tables = [];
    this.uid = "";
    /** What is shown of the object, to keep the focus and a selection of text while it does not change. */
    this.drawn = "";
    this.timer = setInterval(() => this.grow(), 1000);
    this.page = h("div", { class: "page details", tabindex: "0", role: "region", "aria-label": texts.tabs.overview }, this.notes, this.sections, this.related, this.events.element);
    replace(actions, this.bar.element);
    replace(body, this.page);
    view.close = () => this.close();
  }

  close() {
    this.stop.abort();
    clearInterval(this.timer);
    this.tables.forEach((table) => table.close());
  }

  /** Read the object, and again after each change. */
  async run() {
    const { signal } = this.stop;
    while (!signal.aborted) {
      try {
        if (!(await this.follow())) return;
      } catch (error) {
        if (signal.aborted) return;
        replace(this.notes, problem(error));
        if ([401, 403, 404, 405].includes(error.code)) return;
      }
      await api.pause(1000, signal);
    }
  }

  /** Return whether the object still exists when the watch ends. */
  async follow() {
    const { resource, namespace, name, path } = this.target, { signal } = this.stop;
    const object = await api.json(path, { signal, question: questionOf("get", resource, namespace, name) });
    this.draw(object);
    if (!resource.verbs.includes("watch")) return false;
    const query = new URLSearchParams({ watch: "1", fieldSelector: `metadata.name=${name}`, resourceVersion: object.metadata.resourceVersion });
    for await (const event of api.watch(`${pathOf(resource, namespace)}?${query}`, { signal })) {
      if (event.type === "ADDED" || event.type === "MODIFIED") this.draw(event.object);
      else if (event.type === "DELETED") {
        replace(this.notes, h("div", { class: "problem", role: "alert" }, texts.deleted));
        return false;
      }
    }
    return true;
  }

  /** @param {any} object */
  draw(object) {
    replace(this.notes);
    const withData = object.apiVersion === "v1" && WITH_DATA.includes(object.kind);
    this.object = object;
    this.bar.update(object);
    this.usage.update(object);
    this.events.update(object);
    if (isGeneric(object)) this.readContext();
    this.drawSections(object, withData);
    if (object.metadata.uid === this.uid) return;
    this.uid = object.metadata.uid;
    this.showRelated(object);
  }

  /** @param {any} object @param {boolean} withData */
  drawSections(object, withData) {
    const sections = describe(object, this.context), drawn = JSON.stringify([sections, withData ? [object.data, object.binaryData] : null]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    replace(this.sections, withData ? dataSection(object, this.shown) : null, sections.map(sectionElement));
    this.sections.firstElementChild?.after(this.usage.element);
  }

  /** Read what else is known of a custom resource, again after each change of the object. */
  async readContext() {
    if (this.reading) return;
    this.reading = true;
    let read = null;
    while (read !== this.object && !this.stop.signal.aborted) {
      read = this.object;
      this.context = await contextOf(this.target, this.stop.signal);
      if (!this.stop.signal.aborted) this.drawSections(this.object, false);
    }
    this.reading = false;
  }

  /** Update the ages. */
  grow() {
    for (const time of this.page.querySelectorAll("time")) {
      const text = age(Date.parse(time.dateTime));
      if (time.textContent !== text) time.textContent = text;
    }
  }

  /** Show what belongs to the object; it is looked up once. @param {any} object */
  showRelated(object) {
    this.tables.forEach((table) => table.close());
    this.tables = [];
    replace(this.related);
    const { namespace } = this.target;
    const web = webSection(object, this.target);
    if (web) this.related.append(web);
    for (const { title, group, resource, ...selection } of liveRelations(object)) {
      const found = api.resourceOf(group, resource);
      if (!found) continue;
      const table = new TableView(found, namespace, (row) => objectAddress(found, row.namespace, row.name), selection);
      this.tables.push(table);
      this.related.append(h("section", { class: "section" }, h("h2", null, title, " ", table.count), h("div", { class: "inner-table" }, table.element)));
    }
    this.related.append(...contentsOf(object, this.stop.signal));
    const history = historyResource(object);
    if (history) this.showHistory(object, history);
    for (const relation of listedRelations(object)) {
      const found = api.resourceOf(relation.group, relation.resource);
      if (found) this.showListed(relation, found);
    }
  }

  /** @param {Resource} resource @returns {Promise<any[]>} */
  async list(resource) {
    const { namespace } = this.target;
    const list = await api.json(`${pathOf(resource, namespace)}?limit=${MAX_LISTED}`, { signal: this.stop.signal, question: questionOf("list", resource, namespace) });
    return list.items ?? [];
  }

  /** @param {import("../lib/relations.js").ListedRelation} relation @param {Resource} resource */
  async showListed({ title, keep }, resource) {
    const place = h("section", { class: "section" });
    this.related.append(place);
    try {
      const items = (await this.list(resource)).filter(keep);
      if (!items.length) { place.remove(); return; }
      replace(place, h("h2", null, title), h("ul", { class: "values" }, items.map(({ metadata }) => h("li", null, h("a", { href: objectAddress(resource, metadata.namespace, metadata.name) }, metadata.name)))));
    } catch (error) {
      if (!this.stop.signal.aborted) replace(place, h("p", { class: "quiet" }, t.notReadable(title, error.message)));
    }
  }

  /** @param {any} object @param {{ group: string, resource: string }} history */
  async showHistory(object, history) {
    const resource = api.resourceOf(history.group, history.resource);
    if (!resource) return;
    const place = h("section", { class: "section", id: "history" });
    this.related.append(place);
    try {
      const revisions = revisionsOf(object, await this.list(resource));
      if (!revisions.length) { place.remove(); return; }
      const undo = (/** @type {import("../lib/history.js").Revision} */ revision) => button(t.undo, () => openAction({ action: undoAction(revision), resource: this.target.resource, objects: [this.bar.object ?? object] }), { "aria-label": `${t.undo} ${revision.number}` });
      replace(place, h("h2", null, t.history), plainTable(t.historyColumns, revisions.map((one) => [
        String(one.number), one.images.join(", "), age(Date.parse(one.created)), one.cause, one.current ? h("span", { class: "quiet" }, t.current) : undo(one),
      ])));
    } catch (error) {
      if (!this.stop.signal.aborted) replace(place, h("p", { class: "quiet" }, t.notReadable(t.history, error.message)));
    }
  }
}
