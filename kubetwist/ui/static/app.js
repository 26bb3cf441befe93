// The page: one view at a time, selected by the fragment of the address.

import { Shell } from "./components/shell.js";
import * as api from "./core/api.js";
import { button, h, openDialog, problem, replace } from "./core/dom.js";
import { applyTheme } from "./core/settings.js";
import { listAddress, objectAddress, optional, parseAddress, withQuery } from "./lib/addresses.js";
import { pathOf } from "./lib/resources.js";
import { texts } from "./lib/texts.js";
import { forgetLooks, listView } from "./pages/list.js";
import { currentUser, showSignIn, signOut } from "./pages/signin.js";

/** @typedef {import("./lib/types.js").Resource} Resource */
/** @typedef {import("./lib/types.js").View} View */

/** The frame, while a user is signed in. @type {Shell | null} */
let shell = null;
/** Announces the end of the session. @type {import("./pages/sessionend.js").SessionWatch | null} */
let session = null;
/** @type {View | null} */
let view = null;
/** The number of the shown view; a view that was loaded too late is not shown. */
let turn = 0;
/** The parts of the address before the current one, and of the current one. @type {[string[], string[]]} */
let addresses = [[], []];

// Sign-in.

async function begin() {
  leave();
  const { user, certified, error } = await currentUser();
  if (user) enter(user);
  else showSignIn(document.body, certified, error, enter);
}

async function end() {
  forgetLooks();
  await signOut();
  location.hash = "";
  begin();
}

/** @param {{ username: string, groups?: string[] }} user */
async function enter(user) {
  const entered = (shell = new Shell(user, { signOut: end, moved: useNamespace, find }));
  replace(document.body, entered.element);
  import("./pages/sessionend.js").then(({ SessionWatch }) => { if (shell === entered) session = new SessionWatch(entered, { unsaved, begin }); }, () => {});
  try { await entered.start(); } catch (error) { replace(entered.main, h("div", { class: "page" }, problem(error))); return; }
  show();
}

function closeView() {
  view?.close?.();
  view = null;
}

function leave() {
  closeView();
  session?.close();
  session = null;
  shell?.close();
  shell = null;
}

// Views.

/**
 * Views of a resource, by the first part of the address.
 *
 * @type {Record<string, (resource: Resource, rest: string[], namespace: string, query: URLSearchParams) => View | Promise<View>>}
 */
const RESOURCE_VIEWS = {
  list: (resource, rest, namespace, query) => listView(resource, namespace, query, returnsTo(resource)),
  new: async (resource, rest, namespace) => (await import("./pages/object.js")).newView(resource, namespace),
  object: async (resource, [namespace, name, tab]) => (await import("./pages/object.js")).objectView(resource, optional(namespace), name, tab || "overview"),
};

/**
 * Other views, by the first part of the address.
 *
 * @type {Record<string, (query: URLSearchParams, namespace: string) => View | Promise<View>>}
 */
const VIEWS = {
  apply: async (query, namespace) => (await import("./pages/apply.js")).applyView(namespace),
  access: async (query, namespace) => (await import("./pages/access.js")).accessView(namespace),
  who: async (query, namespace) => (await import("./pages/who.js")).whoView(query, namespace),
  why: async (query) => (await import("./pages/access.js")).whyView(query),
  plots: async () => (await import("./pages/plots.js")).plotsView(),
};

/** The first parts of addresses of views that depend on the namespace. */
const NAMESPACED_VIEWS = ["", "list", "new", "access"];

/** Return whether the view before the current one was one of an object of a resource. @param {Resource} resource */
const returnsTo = (resource) => {
  const [what, group, name] = addresses[0];
  return ["object", "new"].includes(what) && listAddress({ group: optional(group), resource: name }) === listAddress(resource);
};

/** @param {string} group @param {string} name */
async function findResource(group, name) {
  const find = () => api.resourceOf(optional(group), name);
  const found = find() || (await api.discover(), find());
  if (!found) throw new Error(texts.notServed(name, group));
  return found;
}

/**
 * Return the view of an address.
 *
 * @param {string[]} parts
 * @param {URLSearchParams} query
 * @param {string} namespace The chosen namespace.
 * @returns {Promise<View>}
 */
async function viewOf([what, ...rest], query, namespace) {
  if (Object.hasOwn(RESOURCE_VIEWS, what)) return RESOURCE_VIEWS[what](await findResource(rest[0], rest[1]), rest.slice(2), namespace, query);
  if (Object.hasOwn(VIEWS, what)) return VIEWS[what](query, namespace);
  return (await import("./pages/overview.js")).overview(namespace, () => shell?.askForNamespace());
}

/**
 * Show the namespace of the address; without one that of the entry in the history, or else the chosen one. The address then
 * has it, so that it can be shared.
 *
 * @param {Shell} frame
 * @param {string[]} parts
 * @param {URLSearchParams} query
 */
function takeNamespace(frame, [what, group, name], query) {
  // An earlier user of this tab may have seen all namespaces.
  const before = history.state?.namespace || (frame.everywhere ? history.state?.namespace : null);
  const namespace = query.get("namespace") ?? before ?? frame.namespace;
  if (namespace !== frame.namespace) frame.followNamespace(namespace);
  const dependent = NAMESPACED_VIEWS.includes(what) && (!name || api.resourceOf(optional(group), name)?.namespaced);
  if (dependent && namespace) query.set("namespace", namespace);
  history.replaceState({ namespace }, "", dependent && namespace ? withQuery(location.hash || "#/", query) : location.href);
}

/** Show another namespace in the current view. */
function useNamespace() {
  if (!shell) return;
  const { parts, query } = parseAddress(location.hash);
  if (!NAMESPACED_VIEWS.includes(parts[0])) { history.replaceState({ namespace: shell.namespace }, "", location.href); return; }
  query.set("namespace", shell.namespace);
  location.hash = withQuery(location.hash || "#/", query);
}

/**
 * Move the focus to the view, so that the keyboard and screen readers go on there; not from the choice of the namespace or
 * from where the view has put it.
 *
 * @param {HTMLElement} main
 * @param {HTMLElement | undefined} wanted The heading by default.
 */
function focusView(main, wanted) {
  const active = document.activeElement;
  if (active?.closest("#namespace, dialog, main *")) return;
  const target = wanted ?? main.querySelector("h1");
  if (target instanceof HTMLElement && !wanted) target.tabIndex = -1;
  if (target instanceof HTMLElement) target.focus({ preventScroll: true });
}

/** Show the view of the address. */
async function show() {
  if (!shell) return;
  closeView();
  document.querySelectorAll("dialog").forEach((dialog) => dialog.close());
  shell.clearSearch();
  shell.openDrawer(false);
  const { parts, query } = parseAddress(location.hash);
  addresses = [addresses[1], parts];
  takeNamespace(shell, parts, query);
  shell.mark();
  const mine = ++turn, { main, namespace } = shell;
  try {
    const found = await viewOf(parts, query, namespace);
    if (!shell || mine !== turn) { found.close?.(); return; }
    view = found;
    replace(main, found.element);
    focusView(main, found.focus);
    document.title = found.title ? `${found.title} · kubetwist` : "kubetwist";
  } catch (error) {
    if (mine === turn) replace(main, h("div", { class: "bar" }, h("h1", null, texts.notFound)), h("div", { class: "page" }, problem(error)));
  }
}

// Leaving an edit: the address has changed already, so it is restored until the user has answered.

let staying = "";
const unsaved = () => Boolean(shell && view?.unsaved?.());

/** @param {HashChangeEvent} event */
function changeAddress(event) {
  if (staying === location.hash) { staying = ""; return; }
  if (unsaved()) {
    const to = location.hash;
    staying = new URL(event.oldURL).hash;
    location.hash = staying;
    takeNamespace(/** @type {Shell} */ (shell), parseAddress(staying).parts, parseAddress(staying).query);
    askToLeave(to);
    return;
  }
  show();
  if (shell) { shell.readNamespaces(); shell.refresh().catch(() => {}); }
}

/** @param {string} to */
function askToLeave(to) {
  const discard = () => {
    if (view) view.unsaved = null;
    dialog.close();
    location.hash = to;
  };
  const dialog = openDialog(texts.leaveWithoutSaving, () => [h("p", null, texts.notSaved),
    h("div", { class: "row" }, button(texts.stay, () => dialog.close(), { class: "main", autofocus: true }), button(texts.discard, discard, { class: "danger", id: "leave" }))]);
}

// Keys and dialogs.

async function find() {
  const { openFind } = await import("./components/finddialog.js");
  if (shell && !document.querySelector("dialog[open]")) openFind(shell, { signOut: end, help });
}

async function help() { (await import("./components/helpdialog.js")).openHelp(); }

/** Return the object of the view: the one of its address, or the selected row. */
function currentObject() {
  const { parts: [what, group, name, namespace, object] } = parseAddress(location.hash);
  const resource = api.resourceOf(optional(group || "-"), name);
  if (!resource) return null;
  if (what === "object") return { resource, namespace: optional(namespace), name: object };
  const row = view?.current?.();
  return row ? { resource, ...row } : null;
}

/** Tabs by key. @type {Record<string, string>} */
const TAB_KEYS = { e: "edit", y: "yaml", l: "logs" };
// Resources whose objects have logs: pods, and what has pods.
const WITH_LOGS = ["pods", "deployments", "statefulsets", "daemonsets", "replicasets", "replicationcontrollers", "jobs"];

/** @param {string} pressed @returns {boolean} Whether the key was for the object of the view. */
function objectKey(pressed) {
  const object = currentObject();
  if (!object || !(pressed === "d" || Object.hasOwn(TAB_KEYS, pressed))) return false;
  const { resource, namespace, name } = object;
  if (pressed === "d") askToDelete(object);
  else if (pressed === "e" ? resource.verbs.includes("patch") : pressed === "y" || WITH_LOGS.includes(resource.resource)) {
    location.hash = objectAddress(resource, namespace, name, TAB_KEYS[pressed]);
  }
  return true;
}

/** Open the dialog that deletes an object. @param {{ resource: Resource, namespace: string, name: string }} object */
async function askToDelete(object) {
  const offered = /** @type {HTMLElement | null} */ (document.querySelector("#delete"));
  if (offered) { offered.click(); return; }
  const { resource, namespace, name } = object;
  if (!resource.verbs.includes("delete") || !await api.mayI({ verb: "delete", group: resource.group, resource: resource.resource, namespace, name })) return;
  const { askToDelete: ask } = await import("./pages/object.js");
  if (!document.querySelector("dialog[open]")) ask({ ...object, path: pathOf(resource, namespace, name) }, () => {});
}

/** Leave a field, the drawer or an object. @param {HTMLElement} target @param {boolean} typing */
function escape(target, typing) {
  if (document.querySelector("dialog[open]")) return;
  if (shell?.drawerOpen) { shell.openDrawer(false); return; }
  if (target.tagName === "INPUT") { target.blur(); return; }
  const { parts } = parseAddress(location.hash);
  if (!typing && ["object", "new"].includes(parts[0])) location.hash = listAddress({ group: optional(parts[1]), resource: parts[2] });
}

/** @param {KeyboardEvent} event */
function key(event) {
  if (!shell || event.defaultPrevented) return;
  if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") { event.preventDefault(); find(); return; }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  // The editor is in a shadow root.
  const target = /** @type {HTMLElement} */ (event.composedPath()[0]);
  const typing = target.matches("input:not([type=checkbox], [type=radio]), textarea, select") || target.isContentEditable;
  if (event.key === "Escape") { escape(target, typing); return; }
  if (typing || document.querySelector("dialog[open]")) return;
  if (event.key === "/" && view?.filter) { event.preventDefault(); view.filter.focus(); }
  else if (event.key === "g") { event.preventDefault(); shell.focusSearch(); }
  else if (event.key === "?") { event.preventDefault(); help(); }
  else if (objectKey(event.key)) event.preventDefault();
}

addEventListener("beforeunload", (event) => { if (unsaved()) event.preventDefault(); });
addEventListener("hashchange", changeAddress);
addEventListener("keydown", key);
applyTheme();
// Without anonymous access, the query of the current user is answered with 401; that must not start another sign-in.
api.whenSignedOut(() => { if (session && unsaved()) session.ended(); else if (shell) begin(); });
begin();
