// The rows of a table of objects, computed by the server and kept up to date by a watch.

import { keyOf, rowOf, tableOf } from "../lib/rows.js";
import { pathOf, questionOf } from "../lib/resources.js";
import { json, pause, watch } from "./api.js";

/** @typedef {import("../lib/types.js").Column} Column */
/** @typedef {import("../lib/types.js").Resource} Resource */
/** @typedef {import("../lib/types.js").TableRow} TableRow */
/** @typedef {import("../lib/types.js").Meta} Meta */
/** @typedef {import("../lib/rows.js").Row} Row */

/**
 * @typedef {object} Selection Which objects of a collection are shown.
 * @property {string} [fieldSelector]
 * @property {string} [labelSelector]
 * @property {(meta: Meta) => boolean} [keep] What the server cannot select by.
 * @property {(meta: Meta) => void} [seen] Called for each object that is received.
 */

const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
// Objects per request.
const PAGE = 1000;
// Intervals in milliseconds.
const POLL_INTERVAL = 5000, FIRST_RETRY = 500, LAST_RETRY = 15000;
// Codes after which a request is not repeated.
const FINAL = [400, 401, 403, 404, 405];

/** The rows of a Table, kept up to date by a watch. */
export class LiveTable {
  /**
   * @param {Resource} resource
   * @param {string} namespace
   * @param {() => void} changed Called after each change.
   * @param {Selection} [selection]
   */
  constructor(resource, namespace, changed, { fieldSelector = "", labelSelector = "", keep = () => true, seen = () => {} } = {}) {
    this.selectors = { ...(fieldSelector ? { fieldSelector } : {}), ...(labelSelector ? { labelSelector } : {}) };
    this.keep = keep;
    this.seen = seen;
    /** One string for each namespace, however many rows it has. @type {Map<string, string>} */
    this.namespaces = new Map();
    this.resource = resource;
    this.namespace = namespace;
    this.changed = changed;
    /** @type {Map<string, Row>} */
    this.rows = new Map();
    /** @type {Column[]} */
    this.columns = [];
    /** @type {"loading" | "live" | "failed"} */
    this.state = "loading";
    /** @type {any} */
    this.error = null;
    this.reordered = true;
    this.touched = true;
    this.abort = new AbortController();
  }

  close() { this.abort.abort(); }

  async run() {
    const signal = this.abort.signal;
    let retry = FIRST_RETRY;
    while (!signal.aborted) {
      try {
        const version = await this.list(signal);
        retry = FIRST_RETRY;
        if (this.resource.verbs.includes("watch")) await this.follow(version, signal);
        else await pause(POLL_INTERVAL, signal);
      } catch (error) {
        if (signal.aborted) return;
        this.error = error;
        this.state = "failed";
        this.changed();
        if (FINAL.includes(error.code)) return;
      }
      await pause(retry, signal);
      retry = Math.min(retry * 2, LAST_RETRY);
    }
  }

  /** List all objects; return the resource version. @param {AbortSignal} signal */
  async list(signal) {
    const path = pathOf(this.resource, this.namespace);
    const question = questionOf("list", this.resource, this.namespace);
    const seen = new Set();
    let token = "", version = "";
    do {
      const query = new URLSearchParams({ limit: String(PAGE), ...this.selectors });
      if (token) query.set("continue", token);
      const table = tableOf(await json(`${path}?${query}`, { accept: TABLE, signal, question }));
      this.columns = table.columnDefinitions;
      for (const row of table.rows || []) if (this.keep(row.object.metadata)) seen.add(this.take(row));
      version = table.metadata.resourceVersion;
      token = table.metadata.continue || "";
      this.changed();
    } while (token);
    for (const key of this.rows.keys()) if (!seen.has(key)) this.rows.delete(key);
    this.reordered = true;
    this.error = null;
    this.state = "live";
    this.changed();
    return version;
  }

  /** Watch until the server ends it with an error. @param {string} version @param {AbortSignal} signal */
  async follow(version, signal) {
    const path = pathOf(this.resource, this.namespace);
    const question = questionOf("watch", this.resource, this.namespace);
    for (;;) {
      const query = new URLSearchParams({ watch: "1", allowWatchBookmarks: "true", resourceVersion: version, ...this.selectors });
      let some = false;
      for await (const event of watch(`${path}?${query}`, { accept: TABLE, signal, question })) {
        if (event.type === "ERROR") return;
        some = true;
        const table = tableOf(event.object);
        if (table.columnDefinitions && table.columnDefinitions.length) this.columns = table.columnDefinitions;
        for (const row of table.rows || []) {
          version = row.object.metadata.resourceVersion || version;
          if (event.type === "BOOKMARK") continue;
          if (event.type === "DELETED") { this.rows.delete(keyOf(row.object.metadata)); this.reordered = true; }
          else if (this.keep(row.object.metadata)) this.take(row, true);
        }
        this.changed();
      }
      if (!some) await pause(1000, signal);
      if (signal.aborted) return;
    }
  }

  /** Add or change a row; return its key. A row remains the same as long as its object does, so that a view of it shows its changes. @param {TableRow} found */
  take(found, live = false) {
    this.seen(found.object.metadata);
    const row = rowOf(found, this.columns, live ? performance.now() : 0);
    const namespace = this.namespaces.get(row.namespace);
    if (namespace === undefined) this.namespaces.set(row.namespace, row.namespace);
    else row.namespace = namespace;
    const known = this.rows.get(row.key);
    // Objects of other servers may be without a uid.
    if (known && known.uid === row.uid) Object.assign(known, row);
    else {
      this.rows.set(row.key, row);
      this.reordered = true;
    }
    this.touched = true;
    return row.key;
  }
}
