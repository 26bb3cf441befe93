// Sign-in: with a link of the server, a token, or the browser's certificate.

import * as api from "../core/api.js";
import { button, h, problem, replace } from "../core/dom.js";
import { logo } from "../components/logo.js";
import { texts } from "../lib/texts.js";

/** @typedef {{ username: string, groups?: string[] }} User */

const CERTIFICATE = "certificate";

/** Use the sign-in link in the address, if there is one, and remove it from the address and the history. */
async function followSignInLink() {
  const found = /^#sign-in=([\w-]+)$/.exec(location.hash);
  if (!found) return;
  history.replaceState(null, "", "#/");
  try { await api.signIn({ link: found[1] }); } catch (error) {
    throw error.code === 401 ? new Error(texts.invalidLink) : error;
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
    await followSignInLink();
    const user = await api.whoAmI();
    if (user.username === "system:anonymous") return { user: null, certified: null, error: null };
    if (api.hasSession() || sessionStorage.getItem(CERTIFICATE)) return { user, certified: null, error: null };
    return { user: null, certified: user, error: null };
  } catch (error) {
    return { user: null, certified: null, error: error.code === 401 || error.code === 403 ? null : error };
  }
}

/** End the session. */
export async function signOut() {
  sessionStorage.removeItem(CERTIFICATE);
  try { await api.signOut(); } catch { /* the page forgets the session in any case */ }
}

/**
 * Return a form for a token.
 *
 * @param {() => void} signedIn Called once somebody has signed in.
 * @param {unknown} [failed] An error to show.
 */
export function signInForm(signedIn, failed) {
  const field = h("input", { type: "password", name: "token", autocomplete: "off", placeholder: texts.bearerToken, "aria-label": texts.bearerToken, required: true });
  const messages = h("div", { "aria-live": "polite" }, failed ? problem(failed) : null);
  const send = h("button", { class: "button main", type: "submit" }, texts.signIn);
  const submit = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    send.disabled = true;
    replace(messages);
    try {
      await api.signIn({ token: field.value });
      signedIn();
    } catch (error) {
      replace(messages, error.code === 401 ? h("div", { class: "problem", role: "alert" }, texts.invalidToken) : problem(error));
      field.select();
    } finally { send.disabled = false; }
  };
  return { element: h("form", { class: "ways", onsubmit: submit }, field, send, messages), field };
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
  const { element, field } = signInForm(async () => signedIn(await api.whoAmI()), failed);
  const confirm = (/** @type {User} */ user) => { sessionStorage.setItem(CERTIFICATE, "1"); signedIn(user); };
  replace(root, h("main", { class: "signin" },
    h("h1", { class: "brand" }, logo(), "kubetwist"),
    element,
    certified
      ? h("p", null, button(texts.continueAs(certified.username), () => confirm(certified)), h("span", { class: "quiet" }, texts.withCertificate))
      : h("p", { class: "quiet" }, texts.tokenSources.map((source, index) => (index % 2 ? h("code", null, source) : source)))));
  field.focus();
}
