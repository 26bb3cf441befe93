// The logo, as in icon.svg.

import { svg } from "../core/dom.js";

export const logo = () => svg("svg", { viewBox: "0 0 32 32", "aria-hidden": "true" },
  svg("rect", { width: 32, height: 32, rx: 7, fill: "#2f5fd0" }),
  svg("path", { d: "M10 7v18M22 7c0 9-12 5-12 11M12.500 16.500 22 25", fill: "none", stroke: "#fff", "stroke-width": 3.2, "stroke-linecap": "round" }));
