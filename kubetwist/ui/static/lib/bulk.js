// One action on many objects: the commands, and the requests with a bounded concurrency.

import { namesOf } from "./actionmodel.js";
import { commandLine } from "./shellwords.js";

/** @typedef {import("./actionmodel.js").Action} Action */
/** @typedef {import("./actionmodel.js").Values} Values */
/** @typedef {import("./types.js").KubeObject} KubeObject */
/** @typedef {import("./types.js").Resource} Resource */

// Names in one command; longer commands are hard to read.
const NAMES = 100;

/**
 * Return an action as commands of kubectl: objects of a namespace share a command where kubectl accepts several names.
 *
 * @param {Action} action
 * @param {Resource} resource
 * @param {KubeObject[]} objects
 * @param {Values} values
 * @returns {string[]}
 */
export function kubectlLines(action, resource, objects, values) {
  /** @type {{ words: string[], place: number, names: string[] }[]} */
  const lines = [];
  /** The last command of each form. @type {Map<string, typeof lines[number]>} */
  const last = new Map();
  objects.forEach((object, index) => {
    const words = action.command(resource, object, values), { namespace } = object.metadata;
    if (namespace && !words.includes("--raw")) words.push("-n", namespace);
    const place = words.findIndex((word) => namesOf(resource, object).includes(word));
    const key = JSON.stringify(place < 0 ? index : [place, words.filter((word, at) => at !== place)]);
    const same = last.get(key);
    if (same && same.names.length < NAMES) { same.names.push(words[place]); return; }
    const line = { words, place, names: place < 0 ? [] : [words[place]] };
    last.set(key, line);
    lines.push(line);
  });
  return lines.map(({ words, place, names }) => commandLine(place < 0 ? words : [...words.slice(0, place), ...names, ...words.slice(place + 1)]));
}

/**
 * Call a function for each item, with a bounded number of calls at a time; the function must not throw. No call begins after
 * the signal is aborted.
 *
 * @template T
 * @param {T[]} items
 * @param {(item: T, index: number) => Promise<void>} work
 * @param {number} concurrency
 * @param {AbortSignal} [signal]
 */
export async function forAll(items, work, concurrency, signal) {
  let next = 0;
  const worker = async () => {
    while (next < items.length && !signal?.aborted) {
      const index = next++;
      await work(items[index], index);
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, worker));
}

/**
 * Return the namespaces in which to ask for a permission: one question for each, and first a cluster-wide one if they are many.
 *
 * @param {string[]} namespaces Distinct.
 * @param {number} limit
 * @returns {{ first: string[], then: string[] }} `then` only matters if an answer to `first` is no, and `first` is [""].
 */
export function questionsFor(namespaces, limit) {
  return namespaces.length > limit ? { first: [""], then: namespaces.slice(0, limit) } : { first: namespaces, then: [] };
}
