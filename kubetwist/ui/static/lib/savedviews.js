// Views that the user has saved: a name, and the address of a table with what it shows.

/** @typedef {{ name: string, address: string }} SavedView */

export const MAX_VIEWS = 50, MAX_NAME = 60;
const MAX_ADDRESS = 2000;

/** @param {any} one @returns {one is SavedView} */
const valid = (one) => typeof one?.name === "string" && typeof one.address === "string"
  && one.name.trim() !== "" && one.name.length <= MAX_NAME && one.address.startsWith("#/list/") && one.address.length <= MAX_ADDRESS;

/** @param {SavedView} a @param {SavedView} b */
const byName = (a, b) => a.name.localeCompare(b.name, undefined, { numeric: true });

/**
 * Return the views in a stored text; what is not a view is left out.
 *
 * @param {string | null} text
 * @returns {SavedView[]}
 */
export function viewsOf(text) {
  let found;
  try { found = JSON.parse(text ?? "[]"); } catch { return []; }
  return Array.isArray(found) ? found.filter(valid).slice(0, MAX_VIEWS).map(({ name, address }) => ({ name, address })).sort(byName) : [];
}

/**
 * Return views without one.
 *
 * @param {SavedView[]} views
 * @param {string} name
 */
export const withoutView = (views, name) => views.filter((one) => one.name !== name);

/**
 * Return views with one more, which replaces the one of the same name; null if there are too many, or if it is invalid.
 *
 * @param {SavedView[]} views
 * @param {SavedView} view
 * @returns {SavedView[] | null}
 */
export function withView(views, view) {
  const added = { name: view.name.trim(), address: view.address };
  const all = [...withoutView(views, added.name), added].sort(byName);
  return all.length > MAX_VIEWS || !valid(added) ? null : all;
}
