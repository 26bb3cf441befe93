// The actions on the selected rows of a table.

import { button, h, loadStyle, replace } from "../core/dom.js";
import { Permissions } from "../core/permissions.js";
import { attributesOf, bulkActionsOf } from "../lib/actions.js";
import { apiVersionOf } from "../lib/resources.js";
import { texts } from "../lib/texts.js";
import { openAction } from "./actiondialog.js";

/** @typedef {import("../lib/rows.js").Row} Row */
/** @typedef {import("../lib/types.js").KubeObject} KubeObject */
/** @typedef {import("../lib/types.js").Resource} Resource */

const t = texts.operations;

export class SelectionBar {
  /**
   * @param {Resource} resource
   * @param {() => void} clear Clears the selection.
   * @param {(uids: Set<string>) => void} deselect
   */
  constructor(resource, clear, deselect) {
    loadStyle("actions");
    this.resource = resource;
    this.deselect = deselect;
    this.permissions = new Permissions();
    this.count = h("span", { class: "selected-count", "aria-live": "polite" });
    this.actions = h("span", { class: "actions", role: "group", "aria-label": texts.actions.heading });
    this.element = h("div", { class: "selection-bar", role: "toolbar", "aria-label": t.selection }, this.count, this.actions, button(t.clear, clear, { id: "clear-selection" }));
    /** @type {Row[]} */
    this.rows = [];
    /** Those for which the actions are shown. */
    this.namespaces = "none";
  }

  /** @param {Row[]} rows The selected ones. @param {number} hidden How many of them the filter hides. */
  async update(rows, hidden) {
    this.rows = rows;
    const text = t.selected(rows.length, hidden);
    if (this.count.textContent !== text) this.count.textContent = text;
    const { resource } = this, namespaces = [...new Set(rows.map(({ namespace }) => namespace))].sort(), signature = JSON.stringify(namespaces);
    if (!rows.length || signature === this.namespaces) return;
    this.namespaces = signature;
    const possible = bulkActionsOf(resource);
    const answers = await Promise.all(possible.map((action) => this.permissions.mayIn(namespaces, (namespace) => attributesOf(action, resource, { namespace }))));
    if (signature !== this.namespaces) return;
    const offered = possible.filter((action, index) => answers[index]);
    replace(this.actions, offered.length ? offered.map((action) => button(action.label, () => this.open(action), { id: `selected-${action.id}`, class: action.danger ? "danger" : "" })) : h("span", { class: "quiet" }, t.noActions));
  }

  /** @param {import("../lib/actionmodel.js").Action} action */
  open(action) {
    const { resource } = this, kind = { apiVersion: apiVersionOf(resource), kind: resource.kind };
    /** @type {KubeObject[]} */
    const objects = this.rows.map(({ name, namespace, uid }) => ({ ...kind, metadata: { name, uid, creationTimestamp: "", ...(namespace ? { namespace } : {}) } }));
    openAction({ action, resource, objects, partial: true, succeeded: ({ metadata }) => this.deselect(new Set([metadata.uid])) });
  }
}
