// Requests to the server. Every request has the session's key in a header, which other sites cannot send.

import { resourcesOf } from "../lib/resources.js";
import { texts } from "../lib/texts.js";

/** @typedef {import("../lib/types.js").Question} Question */
/** @typedef {import("../lib/types.js").Resource} Resource */

/**
 * @typedef {object} Options
 * @property {string} [method]
 * @property {string} [accept]
 * @property {string} [body]
 * @property {string} [type] The media type of the body.
 * @property {AbortSignal} [signal]
 * @property {Question} [question] The question that a refusal answers.
 */

const KEY = "kubetwist-key";
/** @type {Set<() => void>} */
const listeners = new Set(), signInListeners = new Set();
// A page in the back/forward cache would keep its connections, of which browsers allow six per host.
const pageHidden = new AbortController();
addEventListener("pagehide", () => pageHidden.abort());
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
let key = localStorage.getItem(KEY) || "";
// Another tab has signed in or out: the cookie belongs to the new key.
addEventListener("storage", (event) => { if (event.key === KEY || event.key === null) useStoredKey(); });

/** A response that is not 2xx, or no response at all: code 0. */
export class APIError extends Error {
  /**
   * @param {number} code
   * @param {any} status The Status, if the response has one.
   * @param {string} text The body.
   * @param {Question} [question]
   */
  constructor(code, status, text, question) {
    super(status?.message || text || texts.serverSilent);
    this.code = code;
    this.status = status || {};
    this.question = question;
  }
}

/**
 * Call a function when the session has ended.
 *
 * @param {() => void} call
 */
export const whenSignedOut = (call) => listeners.add(call);

/**
 * Call a function when a session has begun, in this tab or in another one.
 *
 * @param {() => void} call
 * @returns {() => void} Stops the calls.
 */
export function whenSignedIn(call) {
  signInListeners.add(call);
  return () => { signInListeners.delete(call); };
}

export const hasSession = () => key !== "";

/** Use the key that another tab has stored; return whether it is another one. */
function useStoredKey() {
  const stored = localStorage.getItem(KEY) || "";
  if (stored === key || !stored) return false;
  key = stored;
  signInListeners.forEach((call) => call());
  return true;
}

/** Return the header with the session's key; the browser adds the cookie. */
export const identity = () => ({ "X-Kubetwist-UI": key || "1" });

/**
 * Send a request; throw an APIError unless the response is 2xx.
 *
 * @param {string} path
 * @param {Options} [options]
 */
export async function ask(path, { method = "GET", accept = "application/json", body, type, signal, question } = {}) {
  const sentKey = key;
  /** @type {Record<string, string>} */
  const headers = { Accept: accept, ...identity() };
  if (body !== undefined) headers["Content-Type"] = type || "application/json";
  const ended = signal ? AbortSignal.any([signal, pageHidden.signal]) : pageHidden.signal;
  let response;
  try {
    response = await fetch(path, { method, headers, body, signal: ended, credentials: "same-origin", cache: "no-cache", redirect: "error" });
  } catch (error) {
    if (ended.aborted) throw error;
    throw new APIError(0, {}, texts.serverSilent);
  }
  if (response.ok) return response;
  const content = await response.text();
  /** @type {any} */
  let status = {};
  try {
    if ((response.headers.get("content-type") || "").startsWith("application/yaml")) status = (await import("../vendor/js-yaml/js-yaml.mjs")).load(content);
    else status = JSON.parse(content);
  } catch { /* not every error is a Status */ }
  if (response.status === 401 && !path.startsWith("/ui/")) {
    // The session of the request has ended; another one may have begun since.
    if (key !== sentKey || useStoredKey()) return ask(path, { method, accept, body, type, signal, question });
    forget();
    listeners.forEach((call) => call());
  }
  throw new APIError(response.status, status, content, question);
}

/** @param {string} path @param {Options} [options] @returns {Promise<any>} The decoded JSON. */
export const json = async (path, options) => (await ask(path, options)).json();

/** @param {string} path @param {Options} [options] */
export const text = async (path, options) => (await ask(path, options)).text();

/** Send an object; return the decoded response. @param {string} path @param {unknown} object @param {Options} [options] @returns {Promise<any>} */
export const post = (path, object, options) => json(path, { method: "POST", body: JSON.stringify(object), ...options });

function forget() {
  key = "";
  localStorage.removeItem(KEY);
}

/**
 * Begin a session.
 *
 * @param {{ token: string } | { link: string } | { oidc: string }} credential A token, the secret of a sign-in link, or the
 *   parameters with which an OpenID Connect provider has redirected the browser.
 */
export async function signIn(credential) {
  // The request has the key of the previous session, which the server ends.
  const made = await post("/ui/session", credential);
  key = made.key;
  localStorage.setItem(KEY, key);
  signInListeners.forEach((call) => call());
}

/**
 * Return the seconds until the session ends, unless it is used or renewed before.
 *
 * @returns {Promise<number>}
 */
export const secondsLeft = async () => (await json("/ui/session")).secondsLeft;

/**
 * Return the address at which an OpenID Connect provider signs the user in or out.
 *
 * @param {"start" | "end"} what
 * @returns {Promise<string>}
 */
export async function providerAddress(what) {
  const { location } = await json(`/ui/oidc/${what}`, { method: "POST" });
  if (new URL(location).protocol !== "https:") throw new Error(texts.oidc.invalidAddress);
  return location;
}

/** End the session, and remove what the page has stored for it, such as drafts. */
export async function signOut() {
  try { await ask("/ui/session", { method: "DELETE" }); } finally {
    forget();
    for (const name of Object.keys(localStorage)) if (name.startsWith("kubetwist-draft:")) localStorage.removeItem(name);
  }
}

let user = "";
/** Return the name of the user, after `whoAmI`. */
export const username = () => user;

/**
 * Return the user as which the server authenticates the requests.
 *
 * @returns {Promise<{ username: string, groups?: string[] }>}
 */
export async function whoAmI() {
  const made = await post("/apis/authentication.k8s.io/v1/selfsubjectreviews", { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" });
  user = made.status.userInfo.username;
  return made.status.userInfo;
}

/**
 * Return whether the user may send a request.
 *
 * @param {Record<string, string>} resourceAttributes
 * @returns {Promise<boolean>}
 */
export async function mayI(resourceAttributes) {
  const review = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", spec: { resourceAttributes } };
  return (await post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)).status.allowed;
}

const DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
/** @type {Resource[]} */
let known = [];

/** Read all served resources. */
export async function discover() {
  const documents = await Promise.all(["/api", "/apis"].map((path) => json(path, { accept: DISCOVERY })));
  known = documents.flatMap(resourcesOf);
  return known;
}

export const resources = () => known;

/** @param {string} group @param {string} resource */
export const resourceOf = (group, resource) => known.find((one) => one.group === group && one.resource === resource);

/** @param {string} apiVersion @param {string} kind */
export const resourceOfKind = (apiVersion, kind) => {
  const group = apiVersion.includes("/") ? apiVersion.split("/")[0] : "";
  return known.find((one) => one.group === group && one.kind === kind);
};

/**
 * Yield the decoded events of a watch until it ends.
 *
 * @param {string} path
 * @param {Options} options
 * @returns {AsyncGenerator<{ type: string, object: any }>}
 */
export async function* watch(path, { accept, signal, question }) {
  const response = await ask(path, { accept, signal, question });
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line) yield JSON.parse(line);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/**
 * Wait; return earlier when the signal is aborted.
 *
 * @param {number} milliseconds
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
export const pause = (milliseconds, signal) => new Promise((done) => {
  if (signal.aborted) { done(); return; }
  const timer = setTimeout(done, milliseconds);
  signal.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
});
