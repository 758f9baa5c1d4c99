// SPDX-License-Identifier: BSL-1.0
// draw_page.js PAGE: runs the scripts of a page of lib/report on canvases that draw nothing, and
// prints how many charts they drew.
"use strict";
const page = require("fs").readFileSync(process.argv[2], "utf8");
const scripts = [...page.matchAll(/<script>(.*?)<\/script>/gs)].map(found => found[1]);
const charts = [...page.matchAll(/<script type="application\/json">(.*?)<\/script>/gs)].map(found => found[1]);

let strokes = 0;
const context = canvas => new Proxy({canvas}, {
  get: (known, name) => name in known ? known[name]
      : name === "measureText" ? text => ({width: 6 * text.length})
      : () => { strokes += 1; },
  set: (known, name, value) => { known[name] = value; return true; }
});
const element = kind => {
  const made = {kind, style: {}, width: 600, height: 300, append() {}, after() {}};
  if (kind === "canvas") made.getContext = () => made.context ??= context(made);
  return made;
};
const figure = data => ({
  querySelector: what => what === "script" ? {textContent: data} : {open: true, after() {}}
});
const documentOfPage = {
  documentElement: {},
  querySelectorAll: () => charts.map(figure),
  createElement: element
};

// As in a worker: Chart.js finds no window and takes any canvas with a context.
const Chart = (() => {
  const module = {exports: {}};
  new Function("module", "exports", scripts[0])(module, module.exports);
  return module.exports;
})();
let drawn = 0;
class Counted extends Chart {
  constructor(canvas, config) {
    super(canvas, {...config, options: {...config.options, responsive: false}});
    this.draw();
    drawn += 1;
  }
}
new Function("Chart", "document", "getComputedStyle", scripts[1])(
    Counted, documentOfPage, () => ({getPropertyValue: () => "#000000"}));
if (drawn > 0 && strokes < 10 * drawn) throw new Error("next to nothing was drawn");
console.log(drawn);
