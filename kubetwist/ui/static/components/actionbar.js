// The actions that a user may take on an object.

import { button, h, replace } from "../core/dom.js";
import { Permissions } from "../core/permissions.js";
import { actionsOf, attributesOf } from "../lib/actions.js";
import { texts } from "../lib/texts.js";
import { openAction } from "./actiondialog.js";

/** @typedef {import("../lib/types.js").KubeObject} KubeObject */
/** @typedef {import("../lib/types.js").Resource} Resource */

/** The buttons for an object; an action that the user may not take is not offered. */
export class ActionBar {
  /** @param {Resource} resource */
  constructor(resource) {
    this.resource = resource;
    this.element = h("span", { class: "actions", role: "group", "aria-label": texts.actions.heading });
    this.permissions = new Permissions();
    this.shown = "";
  }

  /** Offer what makes sense in the object's state. @param {KubeObject} object */
  async update(object) {
    const { resource } = this;
    const possible = actionsOf(resource, object).filter((action) => action.offered?.(object) ?? true);
    const answers = await Promise.all(possible.map((action) => this.permissions.mayAll(attributesOf(action, resource, object.metadata))));
    const offered = possible.filter((action, index) => answers[index]);
    this.object = object;
    const signature = offered.map(({ id }) => id).join(" ");
    if (signature === this.shown) return;
    this.shown = signature;
    replace(this.element, offered.map((action) => button(action.label, () => openAction({ action, resource, objects: [this.object ?? object] }), { id: `action-${action.id}`, class: action.danger ? "danger" : "" })));
  }
}
