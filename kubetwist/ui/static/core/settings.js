// Settings that the browser keeps. Without storage, as in some private windows, the defaults apply.

import { themeOf } from "../lib/themes.js";

/** @typedef {import("../lib/themes.js").Theme} Theme */

const THEME = "kubetwist-theme";

/** @param {string} name */
export function stored(name) {
  try { return localStorage.getItem(name); } catch { return null; }
}

/** Store a text; return whether that was possible. @param {string} name @param {string} text */
export function store(name, text) {
  try { localStorage.setItem(name, text); } catch { return false; }
  return true;
}

/** The chosen theme. */
export const theme = () => themeOf(stored(THEME));

/** Choose a theme. @param {Theme} chosen */
export function setTheme(chosen) {
  store(THEME, chosen);
  applyTheme();
}

/** Show the chosen theme. */
export function applyTheme() {
  document.documentElement.dataset.theme = theme();
}
