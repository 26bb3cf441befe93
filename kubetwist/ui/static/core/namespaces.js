// The namespaces that a user has chosen in this browser: who may not list namespaces finds them again.

const MAX_REMEMBERED = 10;

/** @param {string} user */
const storedAs = (user) => `namespaces ${user}`;

/**
 * Return the namespaces, last used first.
 *
 * @param {string} user
 * @returns {string[]}
 */
export function rememberedNamespaces(user) {
  try {
    const found = JSON.parse(localStorage.getItem(storedAs(user)) || "[]");
    return Array.isArray(found) ? found.filter((one) => typeof one === "string") : [];
  } catch { return []; }
}

/**
 * Remember a namespace as the last used one.
 *
 * @param {string} user
 * @param {string} name
 */
export function rememberNamespace(user, name) {
  const names = [name, ...rememberedNamespaces(user).filter((one) => one !== name)].slice(0, MAX_REMEMBERED);
  localStorage.setItem(storedAs(user), JSON.stringify(names));
}
