// The frame around all views: the header with the namespace, and the list of kinds.

import * as api from "../core/api.js";
import { button, h, openDialog, replace, svg } from "../core/dom.js";
import { rememberNamespace, rememberedNamespaces } from "../core/namespaces.js";
import { VIEWS_CHANGED, savedViews, useViewsOf } from "../core/savedviews.js";
import { listAddress, parseAddress } from "../lib/addresses.js";
import { matches } from "../lib/resources.js";
import { texts } from "../lib/texts.js";
import { logo } from "./logo.js";

/** @typedef {import("../lib/types.js").Resource} Resource */

/**
 * @typedef {object} Calls
 * @property {() => void} signOut
 * @property {() => void} moved Called when another namespace was chosen.
 * @property {() => void} find Opens the dialog that finds everything.
 */

const NAMESPACES = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";
// Interval in milliseconds of discovery, which finds new custom resources.
const DISCOVERY_INTERVAL = 5000;
// The maximum of namespaces to try; each needs a request.
const MAX_TRIED_NAMESPACES = 20;
// Namespaced resources of the start page: who may list one of them in all namespaces may choose all.
const WIDE = [["", "pods"], ["apps", "deployments"], ["", "services"], ["", "configmaps"], ["", "events"]];
// The value of the choice of a namespace by its name; it is not a valid name.
const ANOTHER = "…";
const STORED_NAMESPACE = "namespace";
const MENU = "M4 7h16M4 12h16M4 17h16", LENS = "M10.5 17a6.5 6.5 0 1 1 0-13 6.5 6.5 0 0 1 0 13zM15.5 15.5L21 21";

const t = texts.finding;
/** Links to views that belong to no kind. */
export const LINKS = [["#/", texts.overview], ["#/apply", texts.apply.title], ["#/access", texts.grants.access], ["#/plots", texts.plots]];
if (document.querySelector('meta[name="swagger-ui"]')?.getAttribute("content") === "yes") LINKS.push(["/swagger-ui/", texts.swagger]);

/** @param {string} path */
const icon = (path) => svg("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: path }));

/** The frame, while a user is signed in. */
export class Shell {
  /**
   * @param {{ username: string, groups?: string[] }} user
   * @param {Calls} calls
   */
  constructor(user, { signOut, moved, find }) {
    this.user = user;
    this.moved = moved;
    this.signOut = signOut;
    useViewsOf(user.username);
    this.namespace = sessionStorage.getItem(STORED_NAMESPACE) ?? "";
    /** @type {string[]} */
    this.namespaces = [];
    /** Whether the choice offers all namespaces. */
    this.everywhere = true;
    this.discovered = "";
    this.kinds = h("div", { onkeydown: (/** @type {KeyboardEvent} */ event) => this.moveAmongKinds(event) });
    this.search = h("input", {
      type: "search", placeholder: texts.findKind, "aria-label": texts.findKind, "aria-keyshortcuts": "g", spellcheck: false,
      oninput: () => this.drawKinds(), onkeydown: (/** @type {KeyboardEvent} */ event) => this.searchKey(event),
    });
    this.choice = h("select", { id: "namespace", "aria-label": texts.namespace, onchange: () => { if (this.choice.value === ANOTHER) this.askForNamespace(); else this.useNamespace(this.choice.value); } });
    this.main = h("main", { class: "main", id: "main", tabindex: "-1" });
    this.opener = h("button", { type: "button", class: "button drawer", "aria-label": texts.kinds, "aria-expanded": "false", "aria-controls": "side", onclick: () => this.openDrawer(!this.drawerOpen) }, icon(MENU));
    const skip = (/** @type {MouseEvent} */ event) => { event.preventDefault(); this.main.focus(); };
    this.element = h("div", { class: "shell" },
      h("a", { class: "skip", href: "#main", onclick: skip }, t.skip),
      h("header", { class: "top" },
        this.opener,
        h("a", { class: "brand", href: "#/", "aria-label": "kubetwist" }, logo(), h("span", null, "kubetwist")),
        h("label", { for: "namespace" }, h("span", null, texts.namespace), this.choice),
        h("button", { type: "button", class: "button finder", id: "find", "aria-keyshortcuts": "Control+K Meta+K", onclick: find }, icon(LENS), h("span", null, t.find), h("kbd", null, t.findKey)),
        h("button", { type: "button", class: "button who", "aria-haspopup": "dialog", title: t.userMenu, onclick: () => this.openUserMenu() }, user.username)),
      h("nav", { class: "side", id: "side", "aria-label": texts.kinds }, this.search, this.kinds),
      h("div", { class: "curtain", onclick: () => this.openDrawer(false) }), this.main);
    this.timer = setInterval(() => { if (!document.hidden) this.refresh().catch(() => {}); }, DISCOVERY_INTERVAL);
    this.stop = new AbortController();
    addEventListener(VIEWS_CHANGED, () => this.drawKinds(), { signal: this.stop.signal });
    this.drawNamespaces();
  }

  close() {
    clearInterval(this.timer);
    this.stop.abort();
  }

  /** Read what the frame shows, and choose a namespace if none was chosen before. */
  async start() {
    const [, , everywhere] = await Promise.all([this.refresh(), this.readNamespaces(), this.mayListEverywhere()]);
    this.everywhere = everywhere;
    const stored = sessionStorage.getItem(STORED_NAMESPACE);
    if (stored === null || (stored === "" && !everywhere)) this.namespace = everywhere ? "" : await this.firstNamespace();
    this.drawNamespaces();
  }

  /** Return whether the user may list in all namespaces what the start page shows; pods are asked for first. */
  async mayListEverywhere() {
    const [may, ...others] = WIDE.map(([group, resource]) => () => api.mayI({ verb: "list", group, resource, namespace: "" }));
    try { return (await may()) || (await Promise.all(others.map((other) => other()))).some(Boolean); } catch { return true; /* the table shows the error */ }
  }

  /** Return the first namespace whose pods the user may list; "" if there is none. */
  async firstNamespace() {
    const may = (/** @type {string} */ namespace) => api.mayI({ verb: "list", resource: "pods", namespace });
    try {
      for (const name of this.likelyNamespaces) if (await may(name)) return name;
    } catch { /* the table shows the error */ }
    return rememberedNamespaces(this.user.username)[0] ?? this.account ?? "";
  }

  /** The namespace of the service account that the user is; undefined for others. */
  get account() { return /^system:serviceaccount:([^:]+):/.exec(this.user.username)?.[1]; }

  /** Namespaces in which the user may have permissions. */
  get likelyNamespaces() { return [...new Set([this.namespace, ...rememberedNamespaces(this.user.username), this.account ?? "", "default", ...this.namespaces])].filter(Boolean).slice(0, MAX_TRIED_NAMESPACES); }

  /** Discover the resources again. */
  async refresh() {
    const signature = JSON.stringify(await api.discover());
    if (signature === this.discovered && this.kinds.firstChild) return;
    this.discovered = signature;
    this.drawKinds();
  }

  async readNamespaces() {
    try {
      const list = await api.json("/api/v1/namespaces", { accept: NAMESPACES });
      this.namespaces = (list.items || []).map((/** @type {import("../lib/types.js").KubeObject} */ one) => one.metadata.name);
    } catch { this.namespaces = []; }
    this.drawNamespaces();
  }

  /** Choose a namespace for this tab. @param {string} name */
  useNamespace(name) {
    sessionStorage.setItem(STORED_NAMESPACE, name);
    if (name) rememberNamespace(this.user.username, name);
    this.followNamespace(name);
    this.moved();
  }

  /** Show the namespace of an address, without choosing it for the tab. @param {string} name */
  followNamespace(name) {
    this.namespace = name;
    this.drawNamespaces();
  }

  /** Ask for the name of a namespace, for users who may not list namespaces. */
  askForNamespace() {
    this.drawNamespaces();
    const field = h("input", { id: "namespace-name", required: true, maxlength: 63, pattern: "[a-z0-9]([\\-a-z0-9]*[a-z0-9])?", spellcheck: false, autocomplete: "off" });
    const dialog = openDialog(texts.namespace, () => h("form", { onsubmit: (/** @type {SubmitEvent} */ event) => { event.preventDefault(); dialog.close(); this.useNamespace(field.value); } },
      h("label", { class: "row", for: "namespace-name" }, texts.namespace, field),
      h("div", { class: "row" }, button(texts.cancel, () => dialog.close()), h("button", { class: "button main", type: "submit" }, texts.show))));
  }

  drawNamespaces() {
    const names = new Set(this.namespaces.length ? this.namespaces : rememberedNamespaces(this.user.username));
    if (this.namespace) names.add(this.namespace);
    if (!names.size) names.add("default");
    const all = this.everywhere ? texts.allNamespaces : this.namespace ? null : texts.namespaces.choose;
    replace(this.choice, all && h("option", { value: "" }, all), [...names].sort().map((name) => h("option", { value: name }, name)), h("option", { value: ANOTHER }, texts.anotherNamespace));
    this.choice.value = this.namespace;
  }

  // The drawer, which has the list of kinds in narrow windows.

  get drawerOpen() { return this.element.classList.contains("open"); }

  /** @param {boolean} open */
  openDrawer(open) {
    if (open === this.drawerOpen) return;
    this.element.classList.toggle("open", open);
    this.opener.setAttribute("aria-expanded", String(open));
    (open ? this.search : this.opener).focus();
  }

  async openUserMenu() {
    const { openUserMenu } = await import("./usermenu.js");
    openUserMenu(this.user, this.signOut);
  }

  // The list of kinds.

  /** Move the focus to the search. */
  focusSearch() {
    if (this.opener.checkVisibility()) this.openDrawer(true);
    this.search.focus();
  }

  /** Move from the search field down to the links, or open the first of them. @param {KeyboardEvent} event */
  searchKey(event) {
    if (event.key !== "ArrowDown" && event.key !== "Enter") return;
    const first = this.kinds.querySelector("a");
    if (!first) return;
    event.preventDefault();
    if (event.key === "ArrowDown") first.focus();
    else first.click();
  }

  /** @param {KeyboardEvent} event */
  moveAmongKinds(event) {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    const links = [...this.kinds.querySelectorAll("a")], next = links[links.findIndex((one) => one === document.activeElement) + step];
    if (next) next.focus();
    else if (step < 0) this.search.focus();
  }

  /** Clear the search. */
  clearSearch() {
    if (!this.search.value) return;
    this.search.value = "";
    this.drawKinds();
  }

  drawKinds() {
    const wanted = this.search.value.trim().toLowerCase();
    /** @type {Map<string, Resource[]>} */
    const groups = new Map();
    for (const one of api.resources()) {
      if (!one.verbs.includes("list") || !matches(one, wanted)) continue;
      const members = groups.get(one.group);
      if (members) members.push(one);
      else groups.set(one.group, [one]);
    }
    const link = (/** @type {string} */ href, /** @type {string} */ name, extra = "") => h("a", { href }, name, extra ? h("small", null, extra) : null);
    const views = savedViews().filter(({ name }) => name.toLowerCase().includes(wanted));
    replace(this.kinds,
      wanted ? null : LINKS.map(([href, name]) => link(href, name)),
      views.length ? [h("div", { class: "group" }, t.savedViews), views.map(({ name, address }) => h("div", { class: "view" }, link(address, name),
        h("button", { type: "button", class: "button", "aria-label": t.changeView(name), title: t.changeView(name), onclick: () => this.changeView(name) }, "⋯")))] : null,
      [...groups].map(([group, members]) => [
        h("div", { class: "group" }, group || texts.coreGroup),
        members.sort((a, b) => (a.resource < b.resource ? -1 : 1)).map((one) => link(listAddress(one), one.resource, one.stale ? texts.stale : "")),
      ]));
    this.mark();
  }

  /** Rename or delete a saved view. @param {string} name */
  async changeView(name) { (await import("./viewdialogs.js")).changeView(name); }

  /** Mark the link to the shown view. */
  mark() {
    const here = location.hash || "#/";
    const { parts } = parseAddress(location.hash);
    const view = here.split("?")[0];
    const current = ["list", "object", "new"].includes(parts[0]) ? listAddress({ group: parts[1] || "", resource: parts[2] || "" }) : Object.hasOwn(texts.grants.tabs, view) ? "#/access" : view;
    for (const link of this.kinds.querySelectorAll("a")) {
      const href = link.getAttribute("href");
      if (href === current || href === here) {
        if (!link.hasAttribute("aria-current")) link.scrollIntoView({ block: "nearest" });
        link.setAttribute("aria-current", "page");
      } else link.removeAttribute("aria-current");
    }
  }
}
