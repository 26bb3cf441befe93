// The dialog with the user's name and groups, the theme, and signing out.

import { button, h, openDialog } from "../core/dom.js";
import { setTheme, theme } from "../core/settings.js";
import { THEMES } from "../lib/themes.js";
import { texts } from "../lib/texts.js";

const t = texts.finding;

/**
 * Open the dialog.
 *
 * @param {{ username: string, groups?: string[] }} user
 * @param {() => void} signOut
 */
export function openUserMenu(user, signOut) {
  const chosen = theme();
  const dialog = openDialog(t.userMenu, () => [
    h("h1", null, user.username),
    user.groups?.length ? [h("p", { class: "quiet" }, t.groups), h("ul", { class: "values" }, user.groups.map((group) => h("li", null, h("code", null, group))))] : null,
    h("fieldset", { class: "choices" }, h("legend", null, t.theme), THEMES.map((one) => h("label", { for: `theme-${one}` },
      h("input", { type: "radio", name: "theme", id: `theme-${one}`, value: one, checked: one === chosen, onchange: () => setTheme(one) }), t.themes[one]))),
    h("div", { class: "row" }, button(t.close, () => dialog.close()), button(texts.signOut, () => { dialog.close(); signOut(); }, { id: "sign-out" })),
  ]);
  return dialog;
}
