// SPDX-License-Identifier: MIT
// page.js PAGE: runs the script of perf's page on a document that is just enough for it, clicks on every shape and
// every row, and prints what it saw as JSON.
'use strict';
const fs = require('fs');
const page = fs.readFileSync(process.argv[2], 'utf8');
const data = page.match(/<script id="data" type="application\/json">([\s\S]*?)<\/script>/)[1];
const script = page.match(/<script>([\s\S]*?)<\/script>/)[1];
const made = [];

class Element {
  constructor(kind) {
    Object.assign(this, {kind, dataset: {}, attributes: {}, children: [], listeners: {}, rows: [], text: ''});
    this.classes = new Set();
    this.classList = {add: c => this.classes.add(c), remove: c => this.classes.delete(c),
      toggle: (c, on) => on ? this.classes.add(c) : this.classes.delete(c)};
    made.push(this);
  }
  set textContent(t) { this.text = String(t); this.children = []; }
  get textContent() { return this.text + this.children.map(c => c.textContent === undefined ? c : c.textContent).join(''); }
  setAttribute(name, value) {
    if (/NaN|undefined|Infinity/.test(String(value))) throw new Error(this.kind + ' ' + name + ' is ' + value);
    this.attributes[name] = String(value);
  }
  append(...list) { this.children.push(...list); }
  addEventListener(name, fn) { this.listeners[name] = fn; }
  insertRow() { const row = new Element('tr'); this.rows.push(row); return row; }
  insertCell() { const cell = new Element('td'); this.children.push(cell); return cell; }
}

const ids = {};
global.document = {
  getElementById: id => ids[id] = ids[id] || new Element(id),
  createElement: kind => new Element(kind),
  createElementNS: (ns, kind) => new Element(kind),
  querySelectorAll: () => made,
};
document.getElementById('data').textContent = data;
new Function(script)();
let shapes = 0, rows = 0, details = '';
for (const e of made.slice()) {
  if (e.listeners.click) { shapes++; e.listeners.click(); details += ids.detail.textContent; }
  if (e.kind === 'tr' && e.onclick) { rows++; e.onclick(); details += ids.detail.textContent; }
}
ids.find.oninput({target: {value: 'nothing has this name'}});
console.log(JSON.stringify({shapes, rows, details}));
