// What the user may do: each question is asked once.

import { questionsFor } from "../lib/bulk.js";
import { mayI } from "./api.js";

// The most namespaces for which a permission is asked separately.
const MAX_NAMESPACES = 20;

export class Permissions {
  constructor() {
    /** By attributes. @type {Map<string, Promise<boolean>>} */
    this.answers = new Map();
  }

  /** Return whether the user may send a request; not if the question fails. @param {Record<string, string>} attributes @returns {Promise<boolean>} */
  may(attributes) {
    const key = JSON.stringify(attributes);
    let answer = this.answers.get(key);
    if (!answer) {
      answer = mayI(attributes).catch(() => false);
      this.answers.set(key, answer);
    }
    return answer;
  }

  /** @param {Record<string, string>[]} all */
  async mayAll(all) {
    return (await Promise.all(all.map((one) => this.may(one)))).every(Boolean);
  }

  /**
   * Return whether the user may act in namespaces. If they are many, it is asked for all at once, and if the answer is no for some of
   * them; the server refuses the others.
   *
   * @param {string[]} namespaces Distinct; [""] for cluster-wide objects.
   * @param {(namespace: string) => Record<string, string>[]} attributes Returns the attributes of an action.
   */
  async mayIn(namespaces, attributes) {
    const all = (/** @type {string[]} */ names) => this.mayAll(names.flatMap(attributes));
    const { first, then } = questionsFor(namespaces, MAX_NAMESPACES);
    return (await all(first)) || (then.length > 0 && (await all(then)));
  }
}
