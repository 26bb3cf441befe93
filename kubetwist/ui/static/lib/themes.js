// The colours of the page: those of the system, light or dark.

/** @typedef {"system" | "light" | "dark"} Theme */

/** @type {Theme[]} */
export const THEMES = ["system", "light", "dark"];

/**
 * Return a stored theme; that of the system for other values.
 *
 * @param {string | null} text
 * @returns {Theme}
 */
export const themeOf = (text) => THEMES.find((one) => one === text) ?? "system";
