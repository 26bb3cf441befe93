// The data of a ConfigMap or Secret: values of Secrets are shown on request only.

import { button, h, replace } from "../core/dom.js";
import { entriesOf } from "../lib/data.js";
import { bytesText } from "../lib/quantities.js";
import { texts } from "../lib/texts.js";

/** @param {string} name @param {Uint8Array<ArrayBuffer>} bytes */
function download(name, bytes) {
  const url = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
  h("a", { href: url, download: name }).click();
  URL.revokeObjectURL(url);
}

/**
 * Return the section of the data.
 *
 * @param {any} object
 * @param {Set<string>} shown The keys whose values are shown; the view changes it.
 */
export function dataSection(object, shown) {
  const secret = object.kind === "Secret";
  const entry = (/** @type {import("../lib/data.js").Entry} */ { key, text, bytes }) => {
    const place = h("div");
    const draw = () => {
      const visible = !secret || shown.has(key);
      replace(place,
        h("div", { class: "row" }, h("code", { class: "key" }, key), h("span", { class: "quiet" }, `${text === null ? `${texts.binary}, ` : ""}${bytesText(bytes.length)}`),
          secret && text !== null ? button(visible ? texts.hideValue : texts.showValue, () => { if (!shown.delete(key)) shown.add(key); draw(); }, { "aria-label": `${visible ? texts.hideValue : texts.showValue} ${key}` }) : null,
          text !== null ? button(texts.copy, () => navigator.clipboard.writeText(text), { "aria-label": `${texts.copy} ${key}` }) : null,
          button(texts.download, () => download(key, bytes), { "aria-label": `${texts.download} ${key}` })),
        text === null ? null : visible ? h("pre", { class: "value", tabindex: "0" }, text) : h("pre", { class: "value" }, "••••••••"));
    };
    draw();
    return place;
  };
  const entries = entriesOf(object);
  return h("section", { class: "section", id: "data" }, h("h2", null, texts.data), entries.length ? entries.map(entry) : h("p", { class: "quiet" }, texts.noData));
}
