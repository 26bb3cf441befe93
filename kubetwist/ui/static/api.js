// Requests to the server. Every request has the session's key in a header, which other sites cannot send.

const KEY = "kubetwist-key";
const listeners = new Set();
// A page in the back/forward cache would keep its connections, of which browsers allow six per host.
const pageHidden = new AbortController();
addEventListener("pagehide", () => pageHidden.abort());
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
let key = localStorage.getItem(KEY) || "";

export class APIError extends Error {
  constructor(code, status, text, question) {
    super(status?.message || text || "the server does not answer");
    this.code = code;
    this.status = status || {};
    this.question = question;
  }
}

/** Call a function when the session has ended. */
export const whenSignedOut = (call) => listeners.add(call);

export const hasSession = () => key !== "";

/** Return the header with the session's key; the browser adds the cookie. */
export const identity = () => ({ "X-Kubetwist-UI": key || "1" });

/** Send a request; throw an APIError unless the response is 2xx. */
export async function ask(path, { method = "GET", accept = "application/json", body, type, signal, question } = {}) {
  const headers = { Accept: accept, ...identity() };
  if (body !== undefined) headers["Content-Type"] = type || "application/json";
  const ended = signal ? AbortSignal.any([signal, pageHidden.signal]) : pageHidden.signal;
  let response;
  try {
    response = await fetch(path, { method, headers, body, signal: ended, credentials: "same-origin", cache: "no-cache", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new APIError(0, {}, "the server does not answer");
  }
  if (response.ok) return response;
  const text = await response.text();
  let status = {};
  try {
    if ((response.headers.get("content-type") || "").startsWith("application/yaml")) status = (await import("./vendor/js-yaml/js-yaml.mjs")).load(text);
    else status = JSON.parse(text);
  } catch { /* not every error is a Status */ }
  if (response.status === 401 && !path.startsWith("/ui/")) {
    forget();
    listeners.forEach((call) => call());
  }
  throw new APIError(response.status, status, text, question);
}

export const json = async (path, options) => (await ask(path, options)).json();
export const text = async (path, options) => (await ask(path, options)).text();

function forget() {
  key = "";
  localStorage.removeItem(KEY);
}

/** Begin a session with { token }, or with { link }: the secret of a sign-in link. */
export async function signIn(credential) {
  forget();
  const made = await json("/ui/session", { method: "POST", body: JSON.stringify(credential) });
  key = made.key;
  localStorage.setItem(KEY, key);
}

export async function signOut() {
  try { await ask("/ui/session", { method: "DELETE" }); } finally { forget(); }
}

/** Return the user as which the server authenticates the requests. */
export async function whoAmI() {
  const review = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
  const made = await json("/apis/authentication.k8s.io/v1/selfsubjectreviews", { method: "POST", body: JSON.stringify(review) });
  return made.status.userInfo;
}

const DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
let known = [];

/** Return all served resources: [{group, version, resource, kind, namespaced, verbs, shortNames, stale}]. */
export async function discover() {
  const found = [];
  for (const path of ["/api", "/apis"]) {
    const document = await json(path, { accept: DISCOVERY });
    for (const group of document.items || []) {
      const taken = new Set();
      for (const version of group.versions || []) {
        for (const one of version.resources || []) {
          if (taken.has(one.resource) || !one.responseKind) continue;
          taken.add(one.resource);
          found.push({
            group: group.metadata.name || "", version: version.version, resource: one.resource,
            kind: one.responseKind.kind, namespaced: one.scope === "Namespaced", verbs: one.verbs || [],
            shortNames: one.shortNames || [], stale: version.freshness === "Stale",
          });
        }
      }
    }
  }
  known = found;
  return found;
}

export const resources = () => known;
export const resourceOf = (group, resource) => known.find((one) => one.group === group && one.resource === resource);
export const resourceOfKind = (apiVersion, kind) => {
  const group = apiVersion.includes("/") ? apiVersion.split("/")[0] : "";
  return known.find((one) => one.group === group && one.kind === kind);
};

const quote = encodeURIComponent;

/** Return the path of a collection, or of one object in it. */
export function pathOf(resource, namespace, name) {
  const root = resource.group ? `/apis/${quote(resource.group)}` : "/api";
  const where = resource.namespaced && namespace ? `/namespaces/${quote(namespace)}` : "";
  return `${root}/${quote(resource.version)}${where}/${quote(resource.resource)}${name ? `/${quote(name)}` : ""}`;
}

/** Return the query for `/kubetwist/v1/why` about a forbidden request. */
export function questionOf(verb, resource, namespace, name) {
  const question = { verb, resource: resource.resource, apiGroup: resource.group };
  if (resource.namespaced && namespace) question.namespace = namespace;
  if (name) question.name = name;
  return question;
}

/** Yield the decoded events of a watch until it ends. */
export async function* watch(path, { accept, signal, question }) {
  const response = await ask(path, { accept, signal, question });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) if (line) yield JSON.parse(line);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
