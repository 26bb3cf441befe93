// The page: sign-in, the list of kinds on the left, and one view at a time, selected by the fragment of the address.

import * as api from "./api.js";
import { h, problem, replace, svg } from "./dom.js";
import { TableView } from "./table.js";

const root = document.body;
const state = { user: null, namespace: "", namespaces: [], view: null, discovered: "" };
let shell = null;

const logo = () => svg("svg", { viewBox: "0 0 32 32", "aria-hidden": "true" },
  svg("rect", { width: 32, height: 32, rx: 7, fill: "#2f5fd0" }),
  svg("path", { d: "M10 7v18M22 7c0 9-12 5-12 11M12.500 16.500 22 25", fill: "none", stroke: "#fff", "stroke-width": 3.2, "stroke-linecap": "round" }));

// Addresses.

const part = encodeURIComponent;

export const listAddress = (resource) => `#/list/${part(resource.group || "-")}/${part(resource.resource)}`;
export const objectAddress = (resource, namespace, name, tab) =>
  `#/object/${part(resource.group || "-")}/${part(resource.resource)}/${part(namespace || "-")}/${part(name)}${tab ? `/${tab}` : ""}`;

function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  let parts;
  try { parts = path.split("/").map(decodeURIComponent); } catch { parts = [""]; }
  return { parts, query: new URLSearchParams(query || "") };
}

// Sign-in.

/** Use the sign-in link in the address, if there is one, and remove it from the address and the history. */
async function followSignInLink() {
  const found = /^#sign-in=([\w-]+)$/.exec(location.hash);
  if (!found) return;
  history.replaceState(null, "", "#/");
  try { await api.signIn({ link: found[1] }); } catch (error) {
    throw error.code === 401 ? new Error("This link was used before, has expired, or is for a browser on the server's machine.") : error;
  }
}

async function begin() {
  leave();
  let error = null;
  try {
    await followSignInLink();
    const user = await api.whoAmI();
    if (user.username !== "system:anonymous") {
      if (api.hasSession() || sessionStorage.getItem("certificate")) return enter(user);
      return signInView(user);
    }
  } catch (failed) {
    if (failed.code !== 401 && failed.code !== 403) error = failed;
  }
  signInView(null, error);
}

function signInView(certified, failed) {
  leave();
  const field = h("input", { type: "password", name: "token", autocomplete: "off", placeholder: "Bearer token", "aria-label": "Bearer token", required: true });
  const messages = h("div", { "aria-live": "polite" }, failed ? problem(failed) : null);
  const button = h("button", { class: "button main", type: "submit" }, "Sign in");
  const submit = async (event) => {
    event.preventDefault();
    button.disabled = true;
    replace(messages);
    try {
      await api.signIn({ token: field.value });
      enter(await api.whoAmI());
    } catch (error) {
      replace(messages, error.code === 401 ? h("div", { class: "problem", role: "alert" }, "Invalid token.") : problem(error));
      field.select();
    } finally { button.disabled = false; }
  };
  replace(root, h("main", { class: "signin" },
    h("h1", { class: "brand" }, logo(), "kubetwist"),
    h("form", { onsubmit: submit }, field, button, messages),
    certified
      ? h("p", null, h("button", { class: "button", type: "button", onclick: () => { sessionStorage.setItem("certificate", "1"); enter(certified); } }, `Continue as ${certified.username}`),
        h("span", { class: "quiet" }, " with the client certificate of this browser"))
      : h("p", { class: "quiet" }, "A bearer token: of a service account (", h("code", null, "kubectl create token NAME"), "), from ",
        h("code", null, "--token-auth-file"), ", or from OpenID Connect. Alternatively, use a client certificate in this browser.")));
  field.focus();
}

async function signOut() {
  sessionStorage.removeItem("certificate");
  looks.clear();
  try { await api.signOut(); } catch { /* the page forgets the session in any case */ }
  location.hash = "";
  begin();
}

// The frame.

async function enter(user) {
  state.user = user;
  state.namespace = sessionStorage.getItem("namespace") ?? "";
  const kinds = h("div", { onkeydown: moveAmongKinds });
  const search = h("input", { type: "search", placeholder: "Find a kind", "aria-label": "Find a kind", oninput: () => drawKinds(), onkeydown: searchKey, spellcheck: false });
  const choice = h("select", { id: "namespace", onchange: () => { if (choice.value === ANOTHER) askForNamespace(); else useNamespace(choice.value); } });
  const view = h("main", { class: "main" });
  shell = { search, kinds, choice, view, timer: setInterval(() => { if (!document.hidden) refresh().catch(() => {}); }, 5000) };
  replace(root, h("div", { class: "shell" },
    h("header", { class: "top" },
      h("a", { class: "brand", href: "#/" }, logo(), "kubetwist"),
      h("label", { for: "namespace" }, "Namespace", choice),
      h("span", { class: "who", title: (user.groups || []).join("\n") }, user.username),
      h("button", { class: "button", type: "button", onclick: signOut }, "Sign out")),
    h("nav", { class: "side", "aria-label": "Kinds" }, search, kinds), view));
  drawNamespaces();
  try { await Promise.all([refresh(), namespaces()]); } catch (error) { replace(view, h("div", { class: "page" }, problem(error))); return; }
  if (sessionStorage.getItem("namespace") === null) state.namespace = await firstNamespace(user);
  drawNamespaces();
  show();
}

// Maximum number of namespaces to try; each needs a request.
const MAX_TRIED_NAMESPACES = 20;

/** Return the namespace to start in: all, or the first whose pods the user may list; "" if there is none. */
async function firstNamespace(user) {
  const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
  const may = async (namespace) => {
    const spec = { resourceAttributes: { verb: "list", resource: "pods", namespace } };
    const made = await api.json(path, { method: "POST", body: JSON.stringify({ apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", spec }) });
    return made.status.allowed;
  };
  const account = /^system:serviceaccount:([^:]+):/.exec(user.username);
  try {
    if (await may("")) return "";
    for (const name of new Set([account?.[1], "default", ...state.namespaces].filter(Boolean).slice(0, MAX_TRIED_NAMESPACES))) if (await may(name)) return name;
  } catch { /* the table shows the error */ }
  return account ? account[1] : "";
}

function leave() {
  if (state.view && state.view.close) state.view.close();
  state.view = null;
  if (shell) clearInterval(shell.timer);
  shell = null;
}

async function refresh() {
  if (!shell) return;
  const found = await api.discover();
  const signature = JSON.stringify(found);
  if (signature === state.discovered && shell.kinds.firstChild) return;
  state.discovered = signature;
  drawKinds();
}

async function namespaces() {
  const accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";
  try {
    const list = await api.json("/api/v1/namespaces", { accept });
    state.namespaces = (list.items || []).map((one) => one.metadata.name);
  } catch { state.namespaces = []; }
  drawNamespaces();
}

// This is not a valid name of a namespace.
const ANOTHER = "…";

function useNamespace(name) {
  state.namespace = name;
  sessionStorage.setItem("namespace", name);
  drawNamespaces();
  show();
}

/** Ask for the name of a namespace, for users who may not list namespaces. */
function askForNamespace() {
  drawNamespaces();
  const field = h("input", { id: "namespace-name", required: true, maxlength: 63, pattern: "[a-z0-9]([\\-a-z0-9]*[a-z0-9])?", spellcheck: false, autocomplete: "off" });
  const dialog = h("dialog", { "aria-label": "Namespace" }, h("form", { onsubmit: (event) => { event.preventDefault(); dialog.close(); useNamespace(field.value); } },
    h("label", { class: "row", for: "namespace-name" }, "Namespace", field),
    h("div", { class: "row" }, h("button", { class: "button", type: "button", onclick: () => dialog.close() }, "Cancel"), h("button", { class: "button main", type: "submit" }, "Show"))));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function drawNamespaces() {
  if (!shell) return;
  const names = new Set(state.namespaces);
  if (state.namespace) names.add(state.namespace);
  if (!names.size) names.add("default");
  replace(shell.choice, h("option", { value: "" }, "All namespaces"), [...names].sort().map((name) => h("option", { value: name }, name)), h("option", { value: ANOTHER }, "Another…"));
  shell.choice.value = state.namespace;
}

/** Handle keys in the search field: move down to the links, or open the first of them. */
function searchKey(event) {
  if (event.key !== "ArrowDown" && event.key !== "Enter") return;
  const first = shell.kinds.querySelector("a");
  if (!first) return;
  event.preventDefault();
  if (event.key === "ArrowDown") first.focus();
  else first.click();
}

function moveAmongKinds(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const links = [...shell.kinds.querySelectorAll("a")], next = links[links.indexOf(document.activeElement) + step];
  if (next) next.focus();
  else if (step < 0) shell.search.focus();
}

const LINKS = [["#/", "Overview"], ["#/access", "My permissions"], ["#/why", "Why"], ["#/plots", "Plots"]];
if (document.querySelector("meta[name=swagger-ui]")?.content === "yes") LINKS.push(["/swagger-ui/", "Requests (Swagger UI)"]);

function drawKinds() {
  if (!shell) return;
  const wanted = shell.search.value.trim().toLowerCase();
  const groups = new Map();
  for (const one of api.resources()) {
    if (!one.verbs.includes("list") && !one.verbs.includes("create")) continue;
    if (!one.verbs.includes("list")) continue;
    const words = `${one.resource} ${one.kind} ${one.group} ${one.shortNames.join(" ")}`.toLowerCase();
    if (wanted && !words.includes(wanted)) continue;
    if (!groups.has(one.group)) groups.set(one.group, []);
    groups.get(one.group).push(one);
  }
  const link = (href, name, extra) => h("a", { href }, name, extra ? h("small", null, extra) : null);
  replace(shell.kinds,
    wanted ? null : LINKS.map(([href, name]) => link(href, name)),
    [...groups].map(([group, members]) => [
      h("div", { class: "group" }, group || "core"),
      members.sort((a, b) => (a.resource < b.resource ? -1 : 1)).map((one) => link(listAddress(one), one.resource, one.stale ? "stale" : "")),
    ]));
  mark();
}

function mark() {
  const here = location.hash || "#/";
  const { parts } = route();
  const list = ["list", "object", "new"].includes(parts[0]) ? `#/list/${part(parts[1] || "")}/${part(parts[2] || "")}` : here.split("?")[0];
  for (const link of shell.kinds.querySelectorAll("a")) {
    if (link.getAttribute("href") === list) {
      if (!link.hasAttribute("aria-current")) link.scrollIntoView({ block: "nearest" });
      link.setAttribute("aria-current", "page");
    } else link.removeAttribute("aria-current");
  }
}

// Views.

const group = (text) => (text === "-" ? "" : text);

async function show() {
  if (!shell) return;
  if (state.view && state.view.close) state.view.close();
  state.view = null;
  document.querySelectorAll("dialog[open]").forEach((dialog) => dialog.close());
  if (shell.search.value) { shell.search.value = ""; drawKinds(); }
  const { parts, query } = route();
  const [what, ...rest] = parts;
  last = current;
  current = parts;
  mark();
  const turn = (shell.turn = {});
  const put = (view) => {
    if (!shell || shell.turn !== turn) { if (view.close) view.close(); return; }
    state.view = view;
    replace(shell.view, view.element);
    document.title = view.title ? `${view.title} · kubetwist` : "kubetwist";
  };
  try {
    if (what === "list" || what === "object" || what === "new") {
      const resource = api.resourceOf(group(rest[0]), rest[1]) || (await api.discover(), api.resourceOf(group(rest[0]), rest[1]));
      if (!resource) throw new Error(`The server does not serve ${rest[1]} in group ${rest[0]}.`);
      if (what === "list") put(listView(resource));
      else {
        const views = await import("./object.js");
        if (what === "new") put(views.newView(resource, state.namespace));
        else put(views.objectView(resource, group(rest[2]), rest[3], rest[4] || "yaml"));
      }
    } else if (what === "access") put((await import("./access.js")).accessView(state.namespace));
    else if (what === "why") put((await import("./access.js")).whyView(query));
    else if (what === "plots") put((await import("./plots.js")).plotsView());
    else put(overview());
  } catch (error) { replace(shell.view, h("div", { class: "bar" }, h("h1", null, "Not found")), h("div", { class: "page" }, problem(error))); }
}

// View settings of tables, restored after a return from an object; otherwise a table has no filter.
const looks = new Map();
let last = [], current = [];

function listView(resource) {
  const namespace = resource.namespaced ? state.namespace : "";
  const here = listAddress(resource), look = { filter: "", wide: false, ...looks.get(here) };
  const returns = ["object", "new", "list"].includes(last[0]) && `#/list/${part(last[1])}/${part(last[2])}` === here;
  if (!returns) look.filter = "";
  const table = new TableView(resource, namespace, (row, only) => {
    const address = objectAddress(resource, row.namespace, row.name);
    if (!only) location.hash = address;
    return address;
  });
  const filterKey = (event) => {
    if (event.key !== "ArrowDown" && event.key !== "Enter") return;
    event.preventDefault();
    table.enter(event.key === "Enter");
  };
  const filter = h("input", { type: "search", id: "filter", placeholder: "Filter rows", "aria-label": "Filter rows", spellcheck: false, value: look.filter, oninput: () => table.setFilter(filter.value), onkeydown: filterKey });
  const wide = h("input", { type: "checkbox", id: "wide", checked: look.wide, onchange: () => table.setWide(wide.checked) });
  const element = h("div", { class: "main" },
    h("div", { class: "bar" }, h("h1", null, resource.resource), h("span", { class: "kind" }, resource.group ? `${resource.group}/${resource.version}` : resource.version), table.count, h("span", { class: "grow" }),
      filter, h("label", { class: "quiet", for: "wide" }, wide, "wide"),
      resource.verbs.includes("create") ? h("a", { class: "button", href: listAddress(resource).replace("#/list", "#/new") }, "Create") : null),
    table.element);
  element.classList.add("fills");
  setTimeout(() => table.table.focus({ preventScroll: true }));
  table.look = look;
  return { element, title: resource.resource, close: () => { looks.set(here, table.look); table.close(); }, filter };
}

function overview() {
  const counted = ["pods", "deployments", "services", "configmaps", "nodes", "namespaces", "customresourcedefinitions", "events"];
  const cards = counted.map((name) => api.resources().find((one) => one.resource === name)).filter(Boolean);
  const accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";
  const body = h("div", { class: "page" });
  const version = h("span", { class: "quiet" });
  api.json("/version").then((found) => { version.textContent = `${found.gitVersion}, ${found.platform}`; }, () => {});
  const element = h("div", { class: "main fills" }, h("div", { class: "bar" }, h("h1", null, state.namespace ? `Namespace ${state.namespace}` : "All namespaces"), version), body);
  replace(body,
    h("div", { class: "cards" }, cards.map((one) => {
      const count = h("strong", null, "…");
      api.json(`${api.pathOf(one, one.namespaced ? state.namespace : "")}?limit=1`, { accept }).then((list) => {
        count.textContent = String((list.items || []).length + (list.metadata.remainingItemCount || 0));
      }, (error) => { count.textContent = error.code === 403 ? "not allowed" : "?"; });
      return h("a", { class: "card", href: listAddress(one) }, count, h("small", null, one.resource));
    })),
    h("h2", null, "Keys"),
    h("p", { class: "quiet keys" }, [["/", "filter"], ["g", "find a kind"], ["↑ ↓", "select a row"], ["Enter", "open the row"], ["Ctrl Enter", "review changes"], ["Esc", "back to the list"]]
      .map(([keys, what]) => h("span", null, keys.split(" ").map((one) => [h("kbd", null, one), " "]), what))));
  return { element, title: "" };
}

// Leaving an edit: the address has changed already, so it is restored until the user has answered.

let staying = "";

function changeAddress(event) {
  if (staying === location.hash) { staying = ""; return; }
  if (shell && state.view && state.view.unsaved && state.view.unsaved()) {
    const to = location.hash;
    staying = new URL(event.oldURL).hash;
    location.hash = staying;
    askToLeave(to);
    return;
  }
  show();
  if (shell) { namespaces(); refresh().catch(() => {}); }
}

function askToLeave(to) {
  const dialog = h("dialog", { "aria-label": "Leave without saving" },
    h("p", null, "Your changes are not saved."),
    h("div", { class: "row" }, h("button", { class: "button main", type: "button", autofocus: true, onclick: () => dialog.close() }, "Stay"),
      h("button", { class: "button danger", type: "button", id: "leave", onclick: () => { state.view.unsaved = null; dialog.close(); location.hash = to; } }, "Discard changes")));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

addEventListener("beforeunload", (event) => { if (shell && state.view && state.view.unsaved && state.view.unsaved()) event.preventDefault(); });
addEventListener("hashchange", changeAddress);
addEventListener("keydown", (event) => {
  if (!shell || event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = ["INPUT", "TEXTAREA", "SELECT"].includes(event.target.tagName);
  if (event.key === "Escape") {
    if (document.querySelector("dialog[open]")) return;
    if (typing && event.target.tagName === "INPUT") { event.target.blur(); return; }
    const { parts } = route();
    if (!typing && ["object", "new"].includes(parts[0])) location.hash = `#/list/${part(parts[1])}/${part(parts[2])}`;
  } else if (!typing && event.key === "/" && state.view && state.view.filter) { event.preventDefault(); state.view.filter.focus(); }
  else if (!typing && event.key === "g") { event.preventDefault(); shell.search.focus(); }
});
// Without anonymous access, the query of the current user is answered with 401; that must not start another sign-in.
api.whenSignedOut(() => { if (shell) begin(); });
begin();
