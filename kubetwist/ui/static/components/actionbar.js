// The actions that a user may take on an object; each shows its request before it is sent.

import * as api from "../core/api.js";
import { button, h, openDialog, problem, replace } from "../core/dom.js";
import { actionsOf, attributesOf, httpText, kubectlText } from "../lib/actions.js";
import { texts } from "../lib/texts.js";

/** @typedef {import("../lib/actions.js").Action} Action */
/** @typedef {import("../lib/types.js").KubeObject} KubeObject */
/** @typedef {import("../lib/types.js").Resource} Resource */

const t = texts.actions;

/**
 * Ask for the input of an action, show its request, and send it.
 *
 * @param {Action} action
 * @param {Resource} resource
 * @param {KubeObject} object
 */
export function openAction(action, resource, object) {
  const { input } = action;
  const field = input ? h("input", { id: "action-input", type: input.type, value: input.initial(object), required: input.required, pattern: input.pattern, min: input.type === "number" ? 0 : null, step: 1, spellcheck: false, autocomplete: "off", oninput: () => draw() }) : null;
  const command = h("pre", { class: "value", id: "kubectl", tabindex: "0" }), http = h("pre", { class: "value", id: "http", tabindex: "0" });
  const messages = h("div", { "aria-live": "polite" });
  const run = h("button", { type: "submit", class: `button ${action.danger ? "danger" : "main"}`, id: "run" }, action.label);
  const request = () => action.request(resource, object, field?.value ?? "", new Date());
  const draw = () => {
    command.textContent = kubectlText(action, resource, object, field?.value ?? "");
    http.textContent = httpText(request());
  };
  const send = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    run.disabled = true;
    try {
      const { method, path, type, body } = request();
      const question = { ...attributesOf(action, resource, object) };
      question.apiGroup = question.group;
      delete question.group;
      delete question.version;
      await api.ask(path, { method, type, body: body === undefined ? undefined : JSON.stringify(body), question });
      dialog.close();
    } catch (error) { replace(messages, problem(error)); } finally { run.disabled = false; }
  };
  const dialog = openDialog(action.label, () => h("form", { onsubmit: send },
    h("h1", null, `${action.label}: ${object.kind} ${object.metadata.name}`),
    input && field ? h("label", { class: "row", for: "action-input" }, input.label, field) : null,
    h("details", { open: true }, h("summary", null, t.asKubectl), command), h("details", null, h("summary", null, t.asHTTP), http), messages,
    h("div", { class: "row" }, button(texts.cancel, () => dialog.close()), run)));
  draw();
  field?.select();
}

/** The buttons for an object; an action that the user may not take is not offered. */
export class ActionBar {
  /** @param {Resource} resource */
  constructor(resource) {
    this.resource = resource;
    this.element = h("span", { class: "actions", role: "group", "aria-label": t.heading });
    /** Whether the user may take an action, by its attributes. @type {Map<string, Promise<boolean>>} */
    this.allowed = new Map();
    this.shown = "";
  }

  /** Offer what makes sense in the object's state. @param {KubeObject} object */
  async update(object) {
    const possible = actionsOf(this.resource, object).filter((action) => action.offered?.(object) ?? true);
    const answers = await Promise.all(possible.map((action) => this.may(action, object)));
    const offered = possible.filter((action, index) => answers[index]);
    this.object = object;
    const signature = offered.map(({ id }) => id).join(" ");
    if (signature === this.shown) return;
    this.shown = signature;
    replace(this.element, offered.map((action) => button(action.label, () => openAction(action, this.resource, this.object ?? object), { id: `action-${action.id}`, class: action.danger ? "danger" : "" })));
  }

  /** @param {Action} action @param {KubeObject} object */
  may(action, object) {
    const attributes = attributesOf(action, this.resource, object), key = JSON.stringify(attributes);
    let answer = this.allowed.get(key);
    if (!answer) {
      answer = api.mayI(attributes).catch(() => false);
      this.allowed.set(key, answer);
    }
    return answer;
  }
}
