// The search for objects of all kinds: lists of metadata, a few at a time, where the user may list.

import { rank, rulesPermitList, searched } from "../lib/finding.js";
import { pathOf } from "../lib/resources.js";
import { json, mayI, post, resources } from "./api.js";

/** @typedef {import("../lib/types.js").Meta} Meta */
/** @typedef {import("../lib/types.js").Resource} Resource */
/** @typedef {import("../lib/finding.js").Query} Query */
/** @typedef {{ name: string, namespace: string, labels: string }} Candidate */
/** @typedef {{ resource: Resource, name: string, namespace: string, score: number }} Found */

const METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";
// Objects per request; pages of a kind that the query names, and of any other.
const PAGE = 500, NAMED_PAGES = 10, PAGES = 1;
const CONCURRENCY = 4;
// Time in milliseconds for which a list is used again, and how many are kept.
const CACHED = 5000, MAX_CACHED = 300;
// Namespaces that are searched if the user may not search all.
const MAX_NAMESPACES = 10;
// Objects of one kind that are reported.
const MAX_FOUND = 60;
const NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;

/** Searches, with what the user may list, and with lists that are some seconds old. */
export class ObjectSearch {
  /** @param {{ namespaces: string[], likelyNamespaces: string[] }} known The namespaces that exist, and those in which the user may have permissions. */
  constructor(known) {
    this.known = known;
    /** @type {Map<string, { at: number, items: Candidate[], token: string }>} */
    this.cache = new Map();
    /** @type {Map<string, Promise<any>>} */
    this.permissions = new Map();
  }

  /** Return a kept promise; it is not kept if it fails. @template T @param {string} key @param {() => Promise<T>} ask @returns {Promise<T>} */
  once(key, ask) {
    let asked = this.permissions.get(key);
    if (!asked) {
      this.permissions.set(key, (asked = ask()));
      asked.catch(() => this.permissions.delete(key));
    }
    return asked;
  }

  /** Return the rules of the user in a namespace. @param {string} namespace */
  rules(namespace) {
    return this.once(`rules ${namespace}`, async () => {
      const review = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectRulesReview", spec: { namespace } };
      return (await post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review)).status;
    });
  }

  /** Return whether the user may list a resource; in all namespaces if it is "". @param {Resource} resource @param {string} namespace */
  async mayList(resource, namespace) {
    if (await this.once("all", () => mayI({ verb: "list", group: "*", resource: "*" }))) return true;
    // The rules of any namespace contain those for all of them.
    const { resourceRules = [], incomplete } = await this.rules(namespace || this.known.likelyNamespaces[0] || "default");
    if (!rulesPermitList(resourceRules, resource) && !incomplete) return false;
    return this.once(`${resource.group} ${resource.resource} ${namespace}`, () => mayI({ verb: "list", group: resource.group, resource: resource.resource, namespace }));
  }

  /** Return the namespaces in which to list a resource; "" for all. @param {Resource} resource @param {string} wanted @returns {Promise<string[]>} */
  async scopes(resource, wanted) {
    const all = await this.mayList(resource, "");
    if (!wanted) {
      if (all) return [""];
      if (!resource.namespaced) return [];
    }
    if (wanted && !resource.namespaced) return [];
    const { namespaces, likelyNamespaces } = this.known;
    const tried = !wanted ? likelyNamespaces : namespaces.includes(wanted) || !namespaces.length ? [wanted] : namespaces.filter((one) => one.startsWith(wanted));
    /** @type {string[]} */
    const found = [];
    for (const one of tried.slice(0, MAX_NAMESPACES)) if (all || await this.mayList(resource, one)) found.push(one);
    return found;
  }

  /**
   * Read a page of a list.
   *
   * @param {string} path
   * @param {Record<string, string>} parameters
   * @param {AbortSignal} signal
   */
  async page(path, parameters, signal) {
    const url = `${path}?${new URLSearchParams({ limit: String(PAGE), ...parameters })}`;
    const kept = this.cache.get(url), now = performance.now();
    if (kept && now - kept.at < CACHED) return kept;
    const list = await json(url, { accept: METADATA, signal });
    /** @type {Candidate[]} */
    const items = (list.items || []).map((/** @type {{ metadata: Meta }} */ { metadata }) => ({
      name: metadata.name, namespace: metadata.namespace || "", labels: Object.entries(metadata.labels || {}).map(([key, value]) => `${key}=${value}`).join(" "),
    }));
    const found = { at: now, items, token: list.metadata?.continue || "" };
    this.cache.delete(url);
    this.cache.set(url, found);
    for (const oldest of this.cache.keys()) if (this.cache.size > MAX_CACHED) this.cache.delete(oldest); else break;
    return found;
  }

  /**
   * Search the objects of one kind.
   *
   * @param {Resource} resource
   * @param {Query} query
   * @param {AbortSignal} signal
   * @param {(found: Found[]) => void} report Called for each page with matches.
   */
  async searchKind(resource, query, signal, report) {
    /** @type {Record<string, string>} */
    const selector = query.labels.length ? { labelSelector: query.labels.join(",") } : {};
    const matching = (/** @type {Candidate[]} */ items) => {
      /** @type {Found[]} */
      const found = [];
      for (const { name, namespace, labels } of items) {
        const score = rank([name, namespace, labels], query.words);
        if (score > 0) found.push({ resource, name, namespace, score });
      }
      if (found.length) report(found.sort((a, b) => b.score - a.score).slice(0, MAX_FOUND));
      return found.length;
    };
    for (const namespace of await this.scopes(resource, query.namespace)) {
      const path = pathOf(resource, namespace);
      let token = "", count = 0;
      for (let page = 0; page < (query.kinds.length ? NAMED_PAGES : PAGES) && count < MAX_FOUND; page++) {
        signal.throwIfAborted();
        const found = await this.page(path, token ? { ...selector, continue: token } : selector, signal);
        count += matching(found.items);
        token = found.token;
        if (!token) break;
      }
      // In a long list the object of exactly that name may be on no page that was read.
      if (token && query.words.length === 1 && NAME.test(query.words[0])) matching((await this.page(path, { ...selector, fieldSelector: `metadata.name=${query.words[0]}` }, signal)).items);
    }
  }

  /**
   * Search all kinds of a query.
   *
   * @param {Query} query
   * @param {AbortSignal} signal
   * @param {(found: Found[]) => void} report Called whenever something is found.
   * @param {(done: number, all: number) => void} progress Called after each kind.
   */
  async search(query, signal, report, progress) {
    const kinds = searched(query, resources());
    let next = 0, done = 0;
    const work = async () => {
      while (next < kinds.length && !signal.aborted) {
        const resource = kinds[next++];
        // A kind that cannot be read does not end the search in the others.
        try { await this.searchKind(resource, query, signal, report); } catch { /* nothing of it is found */ }
        if (!signal.aborted) progress(++done, kinds.length);
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, work));
  }
}
