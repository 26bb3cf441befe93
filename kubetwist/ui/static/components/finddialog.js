// The dialog that finds kinds, objects, saved views and commands.

import * as api from "../core/api.js";
import { h, loadStyle, openDialog, replace } from "../core/dom.js";
import { ObjectSearch } from "../core/objectsearch.js";
import { savedViews } from "../core/savedviews.js";
import { setTheme } from "../core/settings.js";
import { listAddress, objectAddress } from "../lib/addresses.js";
import { queryOf, rank, searchesObjects } from "../lib/finding.js";
import { texts } from "../lib/texts.js";
import { THEMES } from "../lib/themes.js";
import { LINKS } from "./shell.js";

/** @typedef {import("./shell.js").Shell} Shell */
/** @typedef {import("../core/objectsearch.js").Found} Found */

const t = texts.finding;
// Time in milliseconds from the last key to the search for objects.
const DELAY = 120;
/** The most entries of each group. */
const MOST = { kinds: 6, views: 5, objects: 40, commands: 6 };
const MAX_CREATABLE = 4, MAX_KEPT = 200;
/** The least score of a command: letters inside of its words are not enough. */
const LEAST = 55;
const LIST = "found";

/** @typedef {keyof typeof MOST} Group */

/**
 * @typedef {object} Entry
 * @property {Group} group
 * @property {string} id
 * @property {string} title
 * @property {string} detail
 * @property {number} score
 * @property {string} [href]
 * @property {() => void} [run]
 * @property {Record<string, string>} [needs] The attributes of a request that must be permitted.
 */

/**
 * Open the dialog.
 *
 * @param {Shell} shell
 * @param {{ signOut: () => void, help: () => void }} calls
 */
export function openFind(shell, calls) {
  loadStyle("find");
  return new FindDialog(shell, calls).dialog;
}

/** Return how well a command matches. @param {string[]} titles @param {string[]} words */
function commandScore(titles, words) {
  const found = rank(titles, words);
  return words.length && found < LEAST ? 0 : found;
}

class FindDialog {
  /** @param {Shell} shell @param {{ signOut: () => void, help: () => void }} calls */
  constructor(shell, calls) {
    this.shell = shell;
    this.calls = calls;
    this.objects = new ObjectSearch(shell);
    this.stop = new AbortController();
    this.timer = 0;
    /** @type {Entry[]} */
    this.entries = [];
    /** @type {Found[]} */
    this.found = [];
    /** @type {Map<string, boolean>} */
    this.permitted = new Map();
    this.query = queryOf("", []);
    /** The id of the active entry; the first one is until the user has moved. */
    this.active = "";
    this.input = h("input", {
      type: "text", id: "find-text", role: "combobox", "aria-label": t.findEverything, placeholder: t.findHint, "aria-controls": LIST, "aria-expanded": "true", "aria-autocomplete": "list", spellcheck: false,
      autocomplete: "off", autofocus: true, oninput: () => this.changed(), onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
    });
    this.list = h("div", { id: LIST, role: "listbox", "aria-label": t.found });
    this.status = h("p", { class: "quiet", "aria-live": "polite" });
    this.dialog = openDialog(t.find, () => [this.input, this.list, this.status]);
    this.dialog.classList.add("find");
    this.dialog.addEventListener("close", () => { clearTimeout(this.timer); this.stop.abort(); });
    this.dialog.addEventListener("click", (event) => { if (event.target === this.dialog) this.dialog.close(); });
    this.changed();
  }

  changed() {
    this.query = queryOf(this.input.value, api.resources());
    this.stop.abort();
    this.stop = new AbortController();
    clearTimeout(this.timer);
    this.found = [];
    this.active = "";
    this.status.textContent = "";
    if (searchesObjects(this.query)) {
      this.status.textContent = texts.searching;
      this.timer = setTimeout(() => this.searchObjects(this.stop.signal), DELAY);
    }
    this.draw();
  }

  /** @param {AbortSignal} signal */
  async searchObjects(signal) {
    /** @type {Set<string>} */
    const known = new Set();
    let drawn = true;
    const later = () => {
      if (!drawn) return;
      drawn = false;
      requestAnimationFrame(() => { drawn = true; if (!signal.aborted) this.draw(); });
    };
    const report = (/** @type {Found[]} */ found) => {
      if (signal.aborted) return;
      for (const one of found) {
        const key = this.objectId(one);
        if (known.has(key)) continue;
        known.add(key);
        this.found.push(one);
      }
      this.found = this.found.sort((a, b) => b.score - a.score || (a.name < b.name ? -1 : 1)).slice(0, MAX_KEPT);
      later();
    };
    const progress = (/** @type {number} */ done, /** @type {number} */ all) => {
      this.status.textContent = done < all ? t.searchedKinds(done, all) : this.entries.length || this.found.length ? "" : t.nothingFound;
    };
    await this.objects.search(this.query, signal, report, progress);
    if (!signal.aborted) this.draw();
  }

  /** @param {Found} found */
  objectId({ resource, namespace, name }) { return `object ${resource.group}/${resource.resource}/${namespace}/${name}`; }

  /** Return everything that is known without a search. @returns {Entry[]} */
  known() {
    const { words, kinds, labels, namespace } = this.query, plain = !words.length && !labels.length && !namespace;
    // The name of a kind is a word of a command: "namespace team-a".
    const typed = this.input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const resources = api.resources();
    const places = [...LINKS, ...Object.entries(texts.grants.tabs)].map(([href, title]) => ({ title, href, more: t.goTo }));
    /** @type {{ title: string, more?: string, href?: string, run?: () => void, needs?: Record<string, string> }[]} */
    const commands = [
      ...places,
      { title: texts.signOut, run: this.calls.signOut }, { title: t.help, run: this.calls.help },
      ...THEMES.map((one) => ({ title: `${t.theme}: ${t.themes[one]}`, run: () => setTheme(one) })),
      ...(this.shell.everywhere ? [{ title: `${texts.namespace}: ${texts.allNamespaces}`, run: () => this.shell.useNamespace("") }] : []),
      ...this.shell.namespaces.map((name) => ({ title: `${texts.namespace}: ${name}`, run: () => this.shell.useNamespace(name) })),
      ...(words.length ? resources.filter((one) => one.verbs.includes("create") && one.verbs.includes("list")).map((one) => ({
        title: `${texts.create} ${one.kind}`, more: one.group, href: listAddress(one, "new"), needs: { verb: "create", group: one.group, resource: one.resource, namespace: one.namespaced ? this.shell.namespace : "" },
      })) : []),
    ];
    const listable = words.length || kinds.length ? resources.filter((one) => one.verbs.includes("list")) : [];
    return [
      ...listable.map((one) => ({
        group: /** @type {Group} */ ("kinds"), id: `kind ${one.group}/${one.resource}`, title: one.resource, detail: one.group || texts.coreGroup, href: listAddress(one),
        score: kinds.includes(one) && plain ? 100 : kinds.length ? 0 : rank([one.resource, one.kind, ...one.shortNames, one.group], words),
      })),
      ...savedViews().map(({ name, address }) => ({ group: /** @type {Group} */ ("views"), id: `view ${name}`, title: name, detail: "", href: address, score: rank([name], words) })),
      ...commands.map(({ title, more = "", ...rest }) => ({ group: /** @type {Group} */ ("commands"), id: `command ${title} ${more}`, title, detail: more, score: commandScore([title, more], typed), ...rest })),
    ];
  }

  /** Choose what is shown, the best first. */
  choose() {
    const objects = this.found.map((one) => ({
      group: /** @type {Group} */ ("objects"), id: this.objectId(one), title: one.name, score: one.score, href: objectAddress(one.resource, one.namespace, one.name),
      detail: [one.resource.kind, one.namespace].filter(Boolean).join(" · "),
    }));
    const all = this.known().filter((one) => one.score > 0).sort((a, b) => b.score - a.score);
    /** @type {[Group, Entry[]][]} */
    const groups = /** @type {Group[]} */ (Object.keys(MOST)).map((group) => [group, (group === "objects" ? objects : this.permit(all.filter((one) => one.group === group))).slice(0, MOST[group])]);
    const best = (/** @type {Entry[]} */ entries) => entries[0]?.score ?? 0;
    return groups.filter(([, entries]) => entries.length).sort((a, b) => best(b[1]) - best(a[1]));
  }

  /** Leave out what is not permitted; what is not yet known appears later. @param {Entry[]} entries */
  permit(entries) {
    let asked = 0;
    return entries.filter(({ id, needs }) => {
      if (!needs) return true;
      const known = this.permitted.get(id);
      if (known === undefined && asked < MAX_CREATABLE) {
        asked++;
        this.permitted.set(id, false);
        api.mayI(needs).then((allowed) => { this.permitted.set(id, allowed); if (allowed && this.dialog.open) this.draw(); }, () => this.permitted.delete(id));
      }
      return known === true;
    });
  }

  draw() {
    const groups = this.choose();
    this.entries = groups.flatMap(([, entries]) => entries);
    const at = Math.max(0, this.entries.findIndex((one) => one.id === this.active));
    let index = 0;
    replace(this.list, groups.map(([group, entries]) => h("div", { role: "group", "aria-label": t.groupNames[group] },
      h("div", { class: "group", "aria-hidden": "true" }, t.groupNames[group]), entries.map((entry) => this.option(entry, index++)))));
    this.mark(at);
  }

  /** @param {Entry} entry @param {number} index */
  option(entry, index) {
    const clicked = (/** @type {MouseEvent} */ event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.take(entry);
    };
    return h("a", { role: "option", id: `${LIST}-${index}`, tabindex: "-1", href: entry.href ?? null, onclick: clicked }, h("span", null, entry.title), h("small", null, entry.detail));
  }

  /** Make an entry the active one. @param {number} at */
  mark(at) {
    this.list.querySelectorAll("[role=option]").forEach((one, index) => {
      one.setAttribute("aria-selected", String(index === at));
      if (index === at) one.scrollIntoView({ block: "nearest" });
    });
    if (this.entries.length) this.input.setAttribute("aria-activedescendant", `${LIST}-${at}`);
    else this.input.removeAttribute("aria-activedescendant");
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const count = this.entries.length, at = Math.max(0, this.entries.findIndex((one) => one.id === this.active));
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : event.key === "PageDown" ? 8 : event.key === "PageUp" ? -8 : 0;
    if (event.key === "Enter" && count) this.take(this.entries[at]);
    else if (step && count) {
      const to = Math.abs(step) === 1 ? (at + step + count) % count : Math.max(0, Math.min(count - 1, at + step));
      this.active = this.entries[to].id;
      this.mark(to);
    } else return;
    event.preventDefault();
  }

  /** @param {Entry} entry */
  take({ href, run }) {
    this.dialog.close();
    if (run) run();
    else if (href?.startsWith("#")) location.hash = href;
    else if (href) location.assign(href);
  }
}
