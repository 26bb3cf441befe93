// Drafts of edits in the storage of a browser, by the address of the object. There are none of Secrets.

/** @typedef {{ text: string, version: string, time: number }} Draft `version` is the resourceVersion that was edited, `time` is in milliseconds. */
/** @typedef {Pick<Storage, "getItem" | "setItem" | "removeItem" | "key" | "length">} Store */

/** The prefix of all names; sign-out removes them. */
export const PREFIX = "kubetwist-draft:";
export const MAX_DRAFTS = 20;
/** Longer texts, in characters, are not kept. */
export const MAX_LENGTH = 200_000;

/** Return whether a text may have the values of a Secret. @param {string} text */
export const mayBeSecret = (text) => /\bkind["']?\s*:\s*["']?Secret(?:List)?\b/.test(text);

/** The drafts of one user. */
export class Drafts {
  /** @param {Store} store @param {string} user */
  constructor(store, user) {
    this.store = store;
    this.prefix = `${PREFIX}${encodeURIComponent(user)}:`;
  }

  /** Return the draft of an address; null if there is none. @param {string} address @returns {Draft | null} */
  read(address) {
    try {
      const draft = JSON.parse(this.store.getItem(this.prefix + address) ?? "null");
      return typeof draft?.text === "string" ? { text: draft.text, version: String(draft.version ?? ""), time: Number(draft.time) || 0 } : null;
    } catch { return null; }
  }

  /**
   * Keep a draft; the oldest ones are removed for it. Return whether it is kept.
   *
   * @param {string} address
   * @param {Draft} draft
   */
  write(address, draft) {
    const name = this.prefix + address;
    if (draft.text.length > MAX_LENGTH || mayBeSecret(draft.text)) { this.store.removeItem(name); return false; }
    const others = this.others(name);
    while (others.length >= MAX_DRAFTS) this.store.removeItem(others.shift() ?? "");
    for (;;) {
      try { this.store.setItem(name, JSON.stringify(draft)); return true; } catch {
        // The storage is full.
        const oldest = others.shift();
        if (oldest === undefined) return false;
        this.store.removeItem(oldest);
      }
    }
  }

  /** @param {string} address */
  remove(address) { this.store.removeItem(this.prefix + address); }

  /** Return the names of the other drafts, of all users, oldest first. @param {string} name */
  others(name) {
    /** @type {[number, string][]} */
    const found = [];
    for (let index = 0; index < this.store.length; index++) {
      const one = this.store.key(index);
      if (!one || one === name || !one.startsWith(PREFIX)) continue;
      let time = 0;
      try { time = Number(JSON.parse(this.store.getItem(one) ?? "").time) || 0; } catch { /* it is the first one to remove */ }
      found.push([time, one]);
    }
    return found.sort((a, b) => a[0] - b[0]).map(([, one]) => one);
  }
}
