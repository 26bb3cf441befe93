// The choice of a container, and of a pod if the object is a workload.

import * as api from "../core/api.js";
import { h, replace } from "../core/dom.js";
import { containersOf, mainContainer } from "../lib/containers.js";
import { selectorText } from "../lib/labelselectors.js";
import { pathOf, questionOf } from "../lib/resources.js";
import { texts } from "../lib/texts.js";

/** @typedef {import("../lib/types.js").Target} Target */

const t = texts.streams;
const MAX_PODS = 500;

export class PodChoice {
  /**
   * @param {Target} target A pod or a workload.
   * @param {AbortSignal} signal
   * @param {() => void} changed Called after another pod or container was chosen.
   */
  constructor(target, signal, changed) {
    this.target = target;
    this.signal = signal;
    this.changed = changed;
    /** @type {any[]} */
    this.pods = [];
    /** The chosen pod. @type {any} */
    this.pod = null;
    this.podField = h("select", { id: "pod", onchange: () => this.choose(this.podField.value) });
    this.containerField = h("select", { id: "container", onchange: () => this.changed() });
    this.element = [
      target.resource.kind === "Pod" ? null : h("label", null, t.pod, this.podField),
      h("label", null, t.container, this.containerField),
    ];
  }

  /** Read the pods, and choose one; the choice is kept if it is still there. */
  async read() {
    const { resource, namespace, name, path } = this.target, { signal } = this;
    const pods = api.resourceOf("", "pods");
    if (!pods) throw new Error(t.noPods);
    const object = await api.json(path, { signal, question: questionOf("get", resource, namespace, name) });
    if (resource.kind === "Pod") this.pods = [object];
    else {
      const query = new URLSearchParams({ labelSelector: selectorText(object.spec?.selector ?? {}) ?? "", limit: String(MAX_PODS) });
      this.pods = (await api.json(`${pathOf(pods, namespace)}?${query}`, { signal, question: questionOf("list", pods, namespace) })).items ?? [];
    }
    if (!this.pods.length) throw new Error(t.noPods);
    replace(this.podField, this.pods.map(({ metadata }) => h("option", { value: metadata.name }, metadata.name)));
    const known = this.pods.some(({ metadata }) => metadata.name === this.pod?.metadata.name);
    this.select(known ? this.pod.metadata.name : this.pods[0].metadata.name);
  }

  /** @param {string} name */
  choose(name) {
    this.select(name);
    this.changed();
  }

  /** @param {string} name */
  select(name) {
    const before = this.containerField.value;
    this.pod = this.pods.find(({ metadata }) => metadata.name === name);
    this.podField.value = name;
    const containers = containersOf(this.pod);
    if (!containers.length) throw new Error(t.noContainers);
    replace(this.containerField, containers.map((one) => h("option", { value: one.name }, t.roles[one.role] ? `${one.name} (${t.roles[one.role]})` : one.name)));
    this.containerField.value = containers.some((one) => one.name === before) ? before : mainContainer(this.pod);
  }

  /** Replace the chosen pod by a newer version of it. @param {any} pod */
  update(pod) {
    this.pods = this.pods.map((one) => (one === this.pod ? pod : one));
    this.pod = pod;
  }

  /** The path of the chosen pod. */
  get path() {
    const pods = api.resourceOf("", "pods");
    return pods ? pathOf(pods, this.target.namespace, this.pod.metadata.name) : "";
  }

  /** The chosen container. */
  get container() {
    return this.containerField.value;
  }
}
