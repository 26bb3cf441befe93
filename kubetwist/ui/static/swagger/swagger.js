// Swagger UI over the OpenAPI documents of this server, one group and version at a time.

import { h, problem, replace } from "../core/dom.js";
import * as api from "../core/api.js";

const top = h("header", { class: "top" });
const messages = h("div", { "aria-live": "polite" });
const place = h("main", { id: "swagger-ui" });
const dark = matchMedia("(prefers-color-scheme: dark)");
const wanted = () => new URLSearchParams(location.search).get("api");
let ui = null;

function colours() { document.documentElement.classList.toggle("dark-mode", dark.matches); }

/** Allow requests to this server only, with the session of /ui unless other credentials are given. */
function sent(request) {
  const url = new URL(request.url, location.href);
  if (url.origin !== location.origin) throw new Error("requests to other servers are not allowed");
  request.headers ||= {};
  if (!Object.keys(request.headers).some((name) => name.toLowerCase() === "authorization")) Object.assign(request.headers, api.identity());
  return request;
}

/** Replace the media type of bodies in the documents, which is any type, by the types that every server accepts. */
function typed(document) {
  for (const path of Object.values(document?.paths || {})) {
    for (const { requestBody } of Object.values(path)) {
      const any = requestBody?.content?.["*/*"];
      if (any) requestBody.content = { "application/json": any, "application/yaml": any };
    }
  }
  return document;
}

// Descriptions come from any user who may create a CRD: they are shown as text.
const plain = () => ({
  wrapComponents: {
    Markdown: (original, { React }) => ({ source }) => (source ? React.createElement("div", { className: "text" }, String(source)) : null),
    // The link to the document would open without the session's key.
    InfoUrl: () => () => null,
  },
  statePlugins: { spec: { wrapActions: { updateJsonSpec: (original) => (document) => original(typed(document)) } } },
});

function open(documents, name) {
  const url = documents[name].serverRelativeURL;
  document.title = `${name} · Swagger UI · kubetwist`;
  if (ui) {
    ui.layoutActions.updateFilter(true);
    ui.specActions.updateUrl(url);
    ui.specActions.download(url);
    return;
  }
  ui = window.SwaggerUIBundle({
    url, domNode: place, deepLinking: true, docExpansion: "list", defaultModelsExpandDepth: 0, defaultModelExpandDepth: 1, filter: true,
    displayRequestDuration: true, syntaxHighlight: { activated: false }, validatorUrl: null, oauth2RedirectUrl: null, queryConfigEnabled: false,
    persistAuthorization: false, showMutatedRequest: false, requestInterceptor: sent, plugins: [plain],
  });
}

async function begin() {
  colours();
  dark.addEventListener("change", colours);
  replace(document.body, top, messages, place);
  const back = h("a", { href: "/ui/" }, "kubetwist");
  replace(top, back);
  let documents;
  try { documents = (await api.json("/openapi/v3")).paths; } catch (error) {
    replace(messages, [401, 403].includes(error.code) && !api.hasSession() ? h("div", { class: "problem", role: "alert" }, h("a", { href: "/ui/" }, "Sign in"), " first, then return to this page.") : problem(error));
    return;
  }
  const names = Object.keys(documents).sort((a, b) => (a.split("/")[0] === b.split("/")[0] ? 0 : a.startsWith("api/") ? -1 : b.startsWith("api/") ? 1 : 0) || (a < b ? -1 : 1));
  const chosen = () => (Object.hasOwn(documents, wanted() || "") ? wanted() : Object.hasOwn(documents, "api/v1") ? "api/v1" : names[0]);
  const choice = h("select", { id: "api", onchange: () => { history.pushState(null, "", `?api=${encodeURIComponent(choice.value)}`); open(documents, choice.value); } },
    names.map((name) => h("option", { value: name }, name)));
  const who = h("span", { class: "who" });
  replace(top, back, h("label", { for: "api" }, "API", choice), who);
  api.whoAmI().then((user) => { who.textContent = user.username; }, () => {});
  choice.value = chosen();
  addEventListener("popstate", () => { if (choice.value !== chosen()) { choice.value = chosen(); open(documents, choice.value); } });
  open(documents, choice.value);
}

begin();
