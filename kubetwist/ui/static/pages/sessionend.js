// The end of the session: announced before it happens, and a way to sign in again without leaving the view.

import * as api from "../core/api.js";
import { button, h, loadStyle, openDialog, replace } from "../core/dom.js";
import { texts } from "../lib/texts.js";
import { signInForm } from "./signin.js";

/** Seconds before the end of the session at which it is announced. */
const NOTICE = 300;
/** Interval in seconds of questions for the end, after it was announced or if the server has not answered. */
const INTERVAL = 20;

/** Announces the end of the session while a user is signed in. */
export class SessionWatch {
  /**
   * @param {{ user: { username: string }, element: HTMLElement }} shell The frame.
   * @param {{ unsaved: () => boolean, begin: () => void }} page Whether the view has unsaved changes, and the start of the page.
   */
  constructor(shell, { unsaved, begin }) {
    this.shell = shell;
    this.unsaved = unsaved;
    this.begin = begin;
    /** @type {HTMLDialogElement | null} */
    this.dialog = null;
    this.over = false;
    this.timer = 0;
    this.message = h("span");
    this.notice = h("div", { class: "session-notice", role: "status" }, this.message, button(texts.session.heading, () => this.signInAgain(), { class: "main", id: "sign-in-again" }));
    this.stopListening = api.whenSignedIn(() => this.signedIn());
    this.seen = () => { if (!document.hidden) this.check(); };
    document.addEventListener("visibilitychange", this.seen);
    loadStyle("session");
    this.check();
  }

  close() {
    clearTimeout(this.timer);
    document.removeEventListener("visibilitychange", this.seen);
    this.stopListening();
    this.dialog?.close();
    this.notice.remove();
  }

  /** @param {number} seconds */
  checkIn(seconds) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.check(), seconds * 1000);
  }

  /** Ask for the remaining time, in seconds: the clocks of browser and server may differ. */
  async check() {
    clearTimeout(this.timer);
    if (!api.hasSession()) return;
    let left;
    try { left = await api.secondsLeft(); } catch (error) {
      // The next request of the view finds out that the session has ended.
      if (error.code !== 401) this.checkIn(INTERVAL);
      return;
    }
    if (this.over) return;
    if (left > NOTICE) {
      this.notice.remove();
      this.checkIn(left - NOTICE);
      return;
    }
    this.announce(texts.session.endsIn(Math.ceil(left / 60)));
    this.checkIn(Math.min(left, INTERVAL));
  }

  /** @param {string} text */
  announce(text) {
    if (this.message.textContent !== text) replace(this.message, text);
    if (!this.notice.isConnected) this.shell.element.append(this.notice);
  }

  /** Keep the view after the end of the session, and ask the user to sign in again, once. */
  ended() {
    if (this.over) return;
    this.over = true;
    this.announce(texts.session.ended);
    this.signInAgain();
  }

  signInAgain() {
    if (this.dialog?.open) return;
    const { element, field } = signInForm({ apart: true });
    this.dialog = openDialog(texts.session.heading, (dialog) => [
      h("h1", null, texts.session.heading),
      h("p", null, this.over ? `${texts.session.ended} ` : null, texts.session.kept),
      element,
      h("p", { class: "quiet" }, texts.session.elsewhere),
      h("div", { class: "row" }, button(texts.session.later, () => dialog.close()))]);
    field.focus();
  }

  /** Go on with the new session. */
  async signedIn() {
    this.over = false;
    this.dialog?.close();
    this.notice.remove();
    let user;
    try { user = await api.whoAmI(); } catch { return; }
    const before = this.shell.user.username;
    if (user.username === before) { this.check(); return; }
    if (!this.unsaved()) { this.begin(); return; }
    this.shell.user = user;
    const who = this.shell.element.querySelector(".who");
    if (who) replace(who, user.username);
    openDialog(texts.session.heading, (dialog) => [h("p", null, texts.session.nowUser(user.username, before)), h("div", { class: "row" }, button(texts.show, () => dialog.close(), { autofocus: true }))]);
    this.check();
  }
}
