// Events that are listed once, and then followed by one watch.

import { pathOf, questionOf } from "../lib/resources.js";
import { json, pause, resourceOf, watch } from "./api.js";

// Objects per request, and how many events are kept.
const PAGE = 500, MAX_EVENTS = 5000;
// Intervals in milliseconds: between calls of `changed`, and before the events are listed again.
const CALM = 500, FIRST_RETRY = 1000, LAST_RETRY = 30000;
// Codes after which a request is not repeated.
const FINAL = [400, 401, 403, 404, 405];

/** Events that a field selector selects, kept up to date by a watch until the signal is aborted. */
export class EventFeed {
  /**
   * @param {string} namespace "" for all.
   * @param {string} fieldSelector
   * @param {() => void} changed Called after changes, at most every half a second.
   * @param {AbortSignal} signal
   */
  constructor(namespace, fieldSelector, changed, signal) {
    this.namespace = namespace;
    this.fieldSelector = fieldSelector;
    this.changed = changed;
    this.signal = signal;
    /** By UID. @type {Map<string, any>} */
    this.events = new Map();
    /** Whether there are more events than are kept. */
    this.truncated = false;
    /** Why the events cannot be read or followed now. @type {any} */
    this.error = null;
    /** Whether the events were read. */
    this.read = false;
    this.announced = false;
  }

  /** Read and follow the events. */
  async run() {
    const resource = resourceOf("", "events"), { signal } = this;
    if (!resource) return;
    let retry = FIRST_RETRY;
    while (!signal.aborted) {
      try {
        const version = await this.list(resource);
        retry = FIRST_RETRY;
        await this.follow(resource, version);
      } catch (/** @type {any} */ error) {
        if (signal.aborted) return;
        this.error = error;
        this.announce();
        if (FINAL.includes(error.code)) return;
      }
      await pause(retry, signal);
      retry = Math.min(retry * 2, LAST_RETRY);
    }
  }

  /** @param {import("../lib/types.js").Resource} resource @returns {Promise<string>} The resource version. */
  async list(resource) {
    const { namespace, fieldSelector, signal } = this, events = new Map(), question = questionOf("list", resource, namespace);
    let token = "", version = "";
    do {
      const query = new URLSearchParams({ limit: String(PAGE), ...(fieldSelector ? { fieldSelector } : {}), ...(token ? { continue: token } : {}) });
      const found = await json(`${pathOf(resource, namespace)}?${query}`, { signal, question });
      for (const event of found.items ?? []) events.set(event.metadata.uid, event);
      version = found.metadata.resourceVersion;
      token = found.metadata.continue ?? "";
    } while (token && events.size < MAX_EVENTS);
    this.events = events;
    this.truncated = token !== "";
    this.error = null;
    this.read = true;
    this.announce();
    return version;
  }

  /** Watch until the server ends it. @param {import("../lib/types.js").Resource} resource @param {string} version */
  async follow(resource, version) {
    const { namespace, fieldSelector, signal, events } = this, question = questionOf("watch", resource, namespace);
    const query = new URLSearchParams({ watch: "1", resourceVersion: version, ...(fieldSelector ? { fieldSelector } : {}) });
    for await (const { type, object } of watch(`${pathOf(resource, namespace)}?${query}`, { signal, question })) {
      if (type === "ERROR") return;
      if (type === "DELETED") events.delete(object.metadata.uid);
      else {
        // The event that was changed last is the last one of the map.
        events.delete(object.metadata.uid);
        events.set(object.metadata.uid, object);
        if (events.size > MAX_EVENTS) {
          events.delete(events.keys().next().value ?? "");
          this.truncated = true;
        }
      }
      this.announce();
    }
  }

  announce() {
    if (this.announced) return;
    this.announced = true;
    pause(this.read && !this.error ? CALM : 0, this.signal).then(() => {
      this.announced = false;
      if (!this.signal.aborted) this.changed();
    });
  }
}
