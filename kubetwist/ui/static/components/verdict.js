// The explanation of an authorization decision.

import { h } from "../core/dom.js";
import { texts } from "../lib/texts.js";

/**
 * Return the elements of an answer.
 *
 * @param {any} found The answer of /kubetwist/v1/why.
 */
export function verdict(found) {
  const asked = found.asked;
  const plain = (/** @type {string[][]} */ rows) => h("table", { class: "plain fit" }, h("tbody", null, rows.map((cells) => h("tr", null, cells.map((cell) => h("td", null, cell))))));
  const code = (/** @type {unknown} */ value) => (typeof value === "object" ? JSON.stringify(value) : String(value));
  /** @type {{ name: string, decision: string, reason?: string, error?: string }[]} */
  const authorizers = found.authorizers;
  /** @type {{ text: string }[]} */
  const grants = found.grants || [];
  /** @type {{ why: string }[] | undefined} */
  const misses = found.nearMisses;
  return [h("h2", { id: "verdict", class: found.allowed ? "good" : "bad" }, texts.verdict(asked.user, found.allowed, asked.text || `${asked.verb} ${asked.path}`)),
    plain(authorizers.map((one) => [one.name, one.decision, one.reason || one.error || ""])),
    found.allowedBy ? [h("h2", null, texts.allowedBy), h("table", { class: "plain fit" }, h("tbody", null, Object.entries(found.allowedBy).map(([name, value]) =>
      h("tr", null, h("td", null, name), h("td", null, h("code", null, code(value)))))))] : null,
    grants.length ? [h("h2", null, texts.userHas), h("ul", null, grants.map((one) => h("li", null, one.text)))] : null,
    misses?.length ? [h("h2", null, texts.nearestMisses), h("ol", null, misses.map((miss) => h("li", null, miss.why)))] : null,
    misses && !misses.length ? h("p", { class: "quiet" }, texts.noSimilarRules) : null,
    found.remedy ? [h("h2", null, texts.toAllowIt), h("pre", { id: "remedy" }, found.remedy)] : null];
}
