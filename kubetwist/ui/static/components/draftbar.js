// Keeps a draft while someone edits, and offers it later.

import { username } from "../core/api.js";
import { button, h, replace } from "../core/dom.js";
import { Drafts } from "../lib/drafts.js";
import { texts } from "../lib/texts.js";

const t = texts.editor;
// Interval in milliseconds between a change and the draft.
const DELAY = 300;

/** The drafts of one view. */
export class DraftBar {
  /**
   * @param {string} address Of the view.
   * @param {import("./editor.js").YAMLEditor} editor
   * @param {{ original: string, version?: string, kept?: boolean }} about `kept` is whether drafts may be kept.
   */
  constructor(address, editor, { original, version = "", kept = true }) {
    this.address = address;
    this.editor = editor;
    this.original = original;
    this.version = version;
    this.kept = kept;
    this.drafts = new Drafts(localStorage, username());
    this.element = h("div", { class: "draft", role: "status" });
    this.timer = 0;
    this.onHide = () => this.write();
    addEventListener("pagehide", this.onHide);
    const draft = kept ? this.drafts.read(address) : null;
    if (draft && draft.text !== original) this.offer(draft);
  }

  /** @param {import("../lib/drafts.js").Draft} draft */
  offer(draft) {
    const outdated = this.version !== "" && draft.version !== this.version;
    const done = () => { replace(this.element); this.editor.focus(); };
    replace(this.element, h("span", null, t.draftKept(new Date(draft.time).toLocaleString())), outdated ? h("strong", { class: "waiting" }, t.draftOutdated) : null,
      button(t.useDraft, () => { done(); this.editor.value = draft.text; }, { id: "use-draft" }), button(t.discardDraft, () => { this.drafts.remove(this.address); done(); }, { id: "discard-draft" }));
  }

  /** Keep the text after a change. */
  changed() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.write(), DELAY);
  }

  write() {
    clearTimeout(this.timer);
    if (!this.timer || !this.kept) return;
    this.timer = 0;
    const text = this.editor.value;
    if (text === this.original) this.drafts.remove(this.address);
    else this.drafts.write(this.address, { text, version: this.version, time: Date.now() });
  }

  /** Stop; remove the draft if the text was saved or discarded. @param {boolean} finished */
  close(finished) {
    removeEventListener("pagehide", this.onHide);
    if (!finished) { this.write(); return; }
    clearTimeout(this.timer);
    // An offered draft that nobody has used remains.
    if (this.timer || this.editor.value !== this.original) this.drafts.remove(this.address);
  }
}
