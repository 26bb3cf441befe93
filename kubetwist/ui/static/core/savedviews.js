// The saved views of the user, in the browser's storage.

import { viewsOf } from "../lib/savedviews.js";
import { store, stored } from "./settings.js";

/** @typedef {import("../lib/savedviews.js").SavedView} SavedView */

/** The type of the event at the window after a change. */
export const VIEWS_CHANGED = "savedviews";
let owner = "";

/** Use the views of a user. @param {string} username */
export const useViewsOf = (username) => { owner = username; };

const place = () => `kubetwist-views:${owner}`;

export const savedViews = () => viewsOf(stored(place()));

/** Store the views; return whether that was possible. @param {SavedView[]} views */
export function keepViews(views) {
  const kept = store(place(), JSON.stringify(views));
  dispatchEvent(new Event(VIEWS_CHANGED));
  return kept;
}
