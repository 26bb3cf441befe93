// Links between the pages about permissions.

import { h } from "../core/dom.js";
import { texts } from "../lib/texts.js";

/** @param {string} current The address of the shown page. */
export const accessTabs = (current) => h("nav", { class: "tabs", "aria-label": texts.grants.pages },
  Object.entries(texts.grants.tabs).map(([address, text]) => h("a", { href: address, "aria-current": address === current ? "page" : null }, text)));
