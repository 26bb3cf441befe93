// The page: one view at a time, selected by the fragment of the address.

import { Shell } from "./components/shell.js";
import * as api from "./core/api.js";
import { button, h, openDialog, problem, replace } from "./core/dom.js";
import { listAddress, optional, parseAddress } from "./lib/addresses.js";
import { texts } from "./lib/texts.js";
import { forgetLooks, listView } from "./pages/list.js";
import { overview } from "./pages/overview.js";
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
  const entered = (shell = new Shell(user, { signOut: end, moved: show }));
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
 * @type {Record<string, (resource: Resource, rest: string[], namespace: string) => View | Promise<View>>}
 */
const RESOURCE_VIEWS = {
  list: (resource, rest, namespace) => listView(resource, namespace, returnsTo(resource)),
  new: async (resource, rest, namespace) => (await import("./pages/object.js")).newView(resource, namespace),
  object: async (resource, [namespace, name, tab]) => (await import("./pages/object.js")).objectView(resource, optional(namespace), name, tab || "overview"),
};

/**
 * Other views, by the first part of the address.
 *
 * @type {Record<string, (query: URLSearchParams, namespace: string) => View | Promise<View>>}
 */
const VIEWS = {
  access: async (query, namespace) => (await import("./pages/access.js")).accessView(namespace),
  who: async (query, namespace) => (await import("./pages/who.js")).whoView(query, namespace),
  why: async (query) => (await import("./pages/access.js")).whyView(query),
  plots: async () => (await import("./pages/plots.js")).plotsView(),
};

/** Return whether the view before the current one belonged to a resource. @param {Resource} resource */
const returnsTo = (resource) => {
  const [what, group, name] = addresses[0];
  return Object.hasOwn(RESOURCE_VIEWS, what) && listAddress({ group: optional(group), resource: name }) === listAddress(resource);
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
  if (Object.hasOwn(RESOURCE_VIEWS, what)) return RESOURCE_VIEWS[what](await findResource(rest[0], rest[1]), rest.slice(2), namespace);
  if (Object.hasOwn(VIEWS, what)) return VIEWS[what](query, namespace);
  return overview(namespace, () => shell?.askForNamespace());
}

/** Show the view of the address. */
async function show() {
  if (!shell) return;
  closeView();
  document.querySelectorAll("dialog").forEach((dialog) => dialog.close());
  shell.clearSearch();
  const { parts, query } = parseAddress(location.hash);
  addresses = [addresses[1], parts];
  shell.mark();
  const mine = ++turn, { main, namespace } = shell;
  try {
    const found = await viewOf(parts, query, namespace);
    if (!shell || mine !== turn) { found.close?.(); return; }
    view = found;
    replace(main, found.element);
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

/** @param {KeyboardEvent} event */
function key(event) {
  if (!shell || event.ctrlKey || event.metaKey || event.altKey) return;
  const target = /** @type {HTMLElement} */ (event.target);
  const typing = ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
  if (event.key === "Escape") {
    if (document.querySelector("dialog[open]")) return;
    if (target.tagName === "INPUT") { target.blur(); return; }
    const { parts } = parseAddress(location.hash);
    if (!typing && ["object", "new"].includes(parts[0])) location.hash = listAddress({ group: optional(parts[1]), resource: parts[2] });
  } else if (!typing && event.key === "/" && view?.filter) { event.preventDefault(); view.filter.focus(); }
  else if (!typing && event.key === "g") { event.preventDefault(); shell.search.focus(); }
}

addEventListener("beforeunload", (event) => { if (unsaved()) event.preventDefault(); });
addEventListener("hashchange", changeAddress);
addEventListener("keydown", key);
// Without anonymous access, the query of the current user is answered with 401; that must not start another sign-in.
api.whenSignedOut(() => { if (session && unsaved()) session.ended(); else if (shell) begin(); });
begin();
