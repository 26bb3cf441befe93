// Links between the pages about permissions.

import { h, loadStyle } from "../core/dom.js";
import { texts } from "../lib/texts.js";

/** @param {string} current The address of the shown page. */
export function accessTabs(current) {
  loadStyle("access");
  return h("nav", { class: "tabs access-tabs", "aria-label": texts.grants.pages },
    Object.entries(texts.grants.tabs).map(([address, text]) => h("a", { href: address, "aria-current": address === current ? "page" : null }, text)));
}
