// Sign-in: with a link of the server, a token, or the browser's certificate.

import * as api from "../core/api.js";
import { button, h, problem, replace } from "../core/dom.js";
import { logo } from "../components/logo.js";
import { texts } from "../lib/texts.js";

/** @typedef {{ username: string, groups?: string[] }} User */

const CERTIFICATE = "certificate";

/** The address of the view to return to, and whether this window was opened to sign in. */
const RETURN = "kubetwist-return", OPENED = "kubetwist-opened";
/** The fragment of a window that was opened to sign in with OpenID Connect. */
const SIGN_IN_WINDOW = "#oidc";
const oidcButton = document.querySelector('meta[name="oidc-button"]')?.getAttribute("content") || "";

/** Leave the page, to sign in with OpenID Connect. */
async function goToProvider() {
  const address = await api.providerAddress("start");
  if (location.hash.startsWith("#/")) sessionStorage.setItem(RETURN, location.hash);
  location.assign(address);
}

/** Use what signs in and is in the address, if there is such, and remove it from the address and the history. */
async function followAddress() {
  const link = /^#sign-in=([\w-]+)$/.exec(location.hash), response = /^#oidc\?(.*)$/s.exec(location.hash);
  if (link) {
    history.replaceState(null, "", "#/");
    try { await api.signIn({ link: link[1] }); } catch (error) {
      throw error.code === 401 ? new Error(texts.invalidLink) : error;
    }
  } else if (response) {
    const view = sessionStorage.getItem(RETURN) || "#/", opened = sessionStorage.getItem(OPENED);
    history.replaceState(null, "", view);
    sessionStorage.removeItem(RETURN);
    sessionStorage.removeItem(OPENED);
    try { await api.signIn({ oidc: response[1] || "none" }); } catch (error) {
      throw error.code === 401 ? new Error(error.message) : error;
    }
    if (opened) close();
  } else if (oidcButton && location.hash === SIGN_IN_WINDOW) {
    history.replaceState(null, "", "#/");
    sessionStorage.setItem(OPENED, "1");
    await goToProvider();
    // The page is left now.
    await new Promise(() => {});
  }
}

/**
 * Return the user who is signed in; null if nobody is.
 *
 * @returns {Promise<{ user: User | null, certified: User | null, error: unknown }>} `certified` is the user of a client
 *   certificate, who has not confirmed it yet; `error` says why nobody is signed in.
 */
export async function currentUser() {
  try {
    await followAddress();
    const user = await api.whoAmI();
    if (user.username === "system:anonymous") return { user: null, certified: null, error: null };
    if (api.hasSession() || sessionStorage.getItem(CERTIFICATE)) return { user, certified: null, error: null };
    return { user: null, certified: user, error: null };
  } catch (error) {
    return { user: null, certified: null, error: error.code === 401 || error.code === 403 ? null : error };
  }
}

/** Whether the user has signed out in this page. */
let signedOut = false;

/** End the session. */
export async function signOut() {
  signedOut = true;
  sessionStorage.removeItem(CERTIFICATE);
  try { await api.signOut(); } catch { /* the page forgets the session in any case */ }
}

/**
 * Return a form for the ways to sign in: a token, and OpenID Connect if it is configured.
 *
 * @param {{ failed?: unknown, apart?: boolean }} [options] An error to show; whether OpenID Connect opens a window.
 */
export function signInForm({ failed, apart = false } = {}) {
  const field = h("input", { type: "password", name: "token", autocomplete: "off", placeholder: texts.bearerToken, "aria-label": texts.bearerToken, required: true });
  const messages = h("div", { "aria-live": "polite" }, failed ? problem(failed) : null);
  const send = h("button", { class: oidcButton ? "button" : "button main", type: "submit" }, texts.signIn);
  const submit = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    send.disabled = true;
    replace(messages);
    try { await api.signIn({ token: field.value }); } catch (error) {
      replace(messages, error.code === 401 ? h("div", { class: "problem", role: "alert" }, texts.invalidToken) : problem(error));
      field.select();
    } finally { send.disabled = false; }
  };
  const useProvider = async () => {
    if (apart) { open(`${location.pathname}${SIGN_IN_WINDOW}`); return; }
    replace(messages);
    try { await goToProvider(); } catch (error) { replace(messages, problem(error)); }
  };
  const provider = oidcButton ? [button(oidcButton, useProvider, { class: "main", id: "oidc" }), h("div", { class: "or quiet" }, texts.oidc.or)] : null;
  return { element: h("form", { class: "ways", onsubmit: submit }, provider, field, send, messages), field };
}

/**
 * Show the page for signing in.
 *
 * @param {Element} root
 * @param {User | null} certified The user of the browser's certificate.
 * @param {unknown} failed An error to show.
 * @param {(user: User) => void} signedIn Called once somebody has signed in.
 */
export function showSignIn(root, certified, failed, signedIn) {
  // A sign-in in another tab is one in this tab, too.
  const stop = api.whenSignedIn(async () => {
    stop();
    try { signedIn(await api.whoAmI()); } catch (error) { showSignIn(root, certified, error, signedIn); }
  });
  const { element, field } = signInForm({ failed });
  const leaveProvider = async () => {
    try { location.assign(await api.providerAddress("end")); } catch (error) { replace(notice, problem(error)); }
  };
  const notice = h("div", null, oidcButton && signedOut ? button(texts.oidc.signOut, leaveProvider, { id: "oidc-end" }) : null);
  const confirm = (/** @type {User} */ user) => { stop(); sessionStorage.setItem(CERTIFICATE, "1"); signedIn(user); };
  replace(root, h("main", { class: "signin" },
    h("h1", { class: "brand" }, logo(), "kubetwist"),
    element,
    notice,
    certified
      ? h("p", null, button(texts.continueAs(certified.username), () => confirm(certified)), h("span", { class: "quiet" }, texts.withCertificate))
      : [texts.tokenSources, texts.oidc.link].map((text) => h("p", { class: "quiet" }, text.map((part, index) => (index % 2 ? h("code", null, part) : part))))));
  field.focus();
}
