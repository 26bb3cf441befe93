// The problems of objects: read again every 30 seconds while the page is visible.

import * as api from "../core/api.js";
import { button, h, replace } from "../core/dom.js";
import { objectAddress } from "../lib/addresses.js";
import { CHECKS, allHealthy, newestFirst } from "../lib/problems.js";
import { pathOf } from "../lib/resources.js";
import { texts } from "../lib/texts.js";
import { KeyedTable, since } from "./keyedrows.js";

/** @typedef {import("../lib/problems.js").Check} Check */
/** @typedef {import("../lib/problems.js").Found} Found */
/** @typedef {import("../lib/types.js").Resource} Resource */

const t = texts.start;
const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";
// Objects per request, and of a check; and how many definitions are read one by one.
const PAGE = 500, MAX_CHECKED = 5000, MAX_READ = 20;
// Requests at a time, and rows that are shown at first and by each press of the button.
const PARALLEL = 4, SHOWN = 100;
// Codes after which a check is not repeated: the user may not read its objects, or the server does not have them.
const FINAL = [403, 404, 405];

/** What a check has found. @typedef {{ check: Check, resource: Resource, found: Found[], note: string, refused: boolean, read: boolean }} Result */

export class ProblemsView {
  /** @param {string} namespace "" for all. @param {AbortSignal} signal @param {() => void} readAgain Reads all that the page shows. */
  constructor(namespace, signal, readAgain) {
    this.namespace = namespace;
    this.signal = signal;
    this.most = SHOWN;
    /** Objects of the cluster are checked in the view of all namespaces. @type {Result[]} */
    this.results = CHECKS.flatMap((check) => {
      const resource = check.namespaced || !namespace ? api.resourceOf(check.group, check.resource) : undefined;
      return resource && !resource.stale && resource.verbs.includes("list") ? [{ check, resource, found: [], note: "", refused: false, read: false }] : [];
    });
    this.count = h("span", { class: "count" });
    this.state = h("span", { class: "quiet", id: "checked" }, t.checking);
    this.summary = h("p", { class: "quiet", "aria-live": "polite", id: "no-problems", hidden: true }, t.noProblems);
    this.notes = h("ul", { class: "values quiet" });
    this.table = new KeyedTable(t.columns, t.problems);
    this.more = button("", () => { this.most += 5 * SHOWN; this.draw(); }, { id: "more-problems" });
    this.again = button(t.checkNow, readAgain, { id: "check-now" });
    this.element = h("section", { class: "section", id: "problems", hidden: true }, h("div", { class: "heading" }, h("h2", null, t.problems, " ", this.count), this.state, this.again), this.summary, this.table.element, this.more, this.notes);
    /** @type {Promise<void> | null} */
    this.checking = null;
  }

  /** Whether the user may read nothing that is checked. */
  get refused() { return this.results.every((one) => one.refused); }

  /** Check all objects; a check that runs already is not started again. @returns {Promise<void>} */
  check() {
    this.checking ??= this.checkAll().finally(() => { this.checking = null; });
    return this.checking;
  }

  async checkAll() {
    this.again.disabled = true;
    const left = this.results.filter((one) => !one.refused);
    const work = async () => {
      for (let one = left.shift(); one && !this.signal.aborted; one = left.shift()) {
        await this.run(one);
        if (!this.signal.aborted) this.draw();
      }
    };
    await Promise.all(Array.from({ length: PARALLEL }, work));
    this.again.disabled = false;
    if (this.signal.aborted) return;
    this.state.textContent = t.checkedAt(new Date().toLocaleTimeString([], { hour12: false }));
    this.draw();
  }

  /** Run one check. @param {Result} result */
  async run(result) {
    const { check, resource } = result;
    try {
      const { objects, note } = check.undiscovered ? await this.undiscovered(resource) : await this.suspects(check, resource);
      const now = Date.now();
      result.found = newestFirst(objects.flatMap((object) => {
        const problem = check.problem(object, now), { name, namespace = "" } = object.metadata;
        return problem ? [{ resource, namespace, name, ...problem }] : [];
      }));
      result.note = note;
      result.read = true;
    } catch (/** @type {any} */ error) {
      if (this.signal.aborted) return;
      result.refused = FINAL.includes(error.code);
      if (result.refused) result.found = [];
      result.note = result.refused ? "" : t.notChecked(resource.resource, error.message);
    }
  }

  /**
   * Read the objects of a check, except those of pages whose rows show that nothing is wrong: a row is a tenth of an object.
   *
   * @param {Check} check
   * @param {Resource} resource
   * @returns {Promise<{ objects: any[], note: string }>}
   */
  async suspects({ fieldSelector, healthy }, resource) {
    const { signal } = this, path = pathOf(resource, this.namespace), objects = [];
    let token = "", checked = 0;
    do {
      const query = new URLSearchParams({ limit: String(PAGE), ...(fieldSelector ? { fieldSelector } : {}), ...(token ? { continue: token } : {}) });
      const rows = healthy ? await api.json(`${path}?${query}&includeObject=None`, { accept: TABLE, signal }) : null;
      const whole = !rows || rows.kind !== "Table" || !allHealthy(rows, healthy ?? (() => false));
      const page = whole ? await api.json(`${path}?${query}`, { signal }) : rows;
      if (whole) objects.push(...(page.items ?? []));
      checked += (page.items ?? page.rows ?? []).length;
      token = page.metadata.continue ?? "";
    } while (token && checked < MAX_CHECKED);
    return { objects, note: token ? t.truncated(checked, resource.resource) : "" };
  }

  /**
   * Read the definitions of resources that are not in the discovery documents, or not yet.
   *
   * @param {Resource} resource
   * @returns {Promise<{ objects: any[], note: string }>}
   */
  async undiscovered(resource) {
    const { signal } = this, path = pathOf(resource);
    const served = new Set(api.resources().map((one) => `${one.resource}.${one.group}`));
    const list = await api.json(`${path}?limit=${MAX_CHECKED}`, { accept: METADATA, signal });
    /** @type {string[]} */
    const names = (list.items ?? []).map((/** @type {any} */ one) => one.metadata.name).filter((/** @type {string} */ name) => !served.has(name));
    const objects = [];
    for (const name of names.slice(0, MAX_READ)) {
      try { objects.push(await api.json(pathOf(resource, "", name), { signal })); } catch (/** @type {any} */ error) { if (error.code !== 404) throw error; }
    }
    return { objects, note: names.length > MAX_READ ? t.undiscovered(MAX_READ) : "" };
  }

  draw() {
    const all = this.results.flatMap(({ found }) => found), notes = this.results.map(({ note }) => note).filter(Boolean);
    const done = this.results.every((one) => one.read || one.refused || one.note);
    this.element.hidden = this.refused;
    this.count.textContent = all.length || done ? String(all.length) : "";
    this.summary.hidden = all.length > 0 || !done;
    this.table.element.hidden = !all.length;
    const cells = (/** @type {Found} */ one) => [one.resource.kind,
      [h("a", { href: objectAddress(one.resource, one.namespace, one.name) }, one.name), !this.namespace && one.namespace ? h("small", null, ` in ${one.namespace}`) : null],
      [h("span", { class: "bad" }, one.reason), one.detail ? h("small", null, one.detail) : null], since(one.since)];
    const rows = new Map(all.slice(0, this.most).map((one) => {
      const key = JSON.stringify([one.resource.group, one.resource.resource, one.namespace, one.name]);
      return [key, { key, cells: cells(one), signature: JSON.stringify([one.reason, one.detail, one.since]) }];
    }));
    this.table.show([...rows.values()]);
    this.more.hidden = all.length <= this.most;
    this.more.textContent = t.shown(Math.min(all.length - this.most, 5 * SHOWN));
    replace(this.notes, [...new Set(notes)].map((note) => h("li", null, note)));
  }
}
