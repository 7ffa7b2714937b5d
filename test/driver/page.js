// SPDX-License-Identifier: MIT
// page.js PAGE: runs the script of perf's page on a document that is just enough for it, in three widths; checks that
// everything drawn lies inside its drawing; clicks on every shape and every row, walks through the drawings by keys;
// and prints what it saw as JSON.
'use strict';
const fs = require('fs');
const page = fs.readFileSync(process.argv[2], 'utf8');
const data = page.match(/<script id="data" type="application\/json">([\s\S]*?)<\/script>/)[1];
const script = page.match(/<script>([\s\S]*?)<\/script>/)[1];
const PIXELS = 6.5; // a letter, about
let made = [];

class Element {
  constructor(kind) {
    Object.assign(this, {kind, dataset: {}, attributes: {}, children: [], listeners: {}, style: {}, hidden: false,
      offsetWidth: 100, offsetHeight: 40});
    this.classes = new Set();
    this.classList = {add: c => this.classes.add(c), remove: c => this.classes.delete(c),
      toggle: (c, on) => on ? this.classes.add(c) : this.classes.delete(c)};
    made.push(this);
  }
  get id() { return this.attributes.id; }
  set textContent(t) { this.children = t === '' ? [] : [String(t)]; }
  get textContent() { return this.children.map(c => typeof c === 'string' ? c : c.textContent).join(''); }
  setAttribute(name, value) {
    if (/NaN|undefined|Infinity/.test(String(value)) && name !== 'aria-label') throw new Error(this.kind + ' ' + name + ' is ' + value);
    this.attributes[name] = String(value);
  }
  append(...list) {
    for (const c of list) {
      if (c === undefined || c === null) throw new Error('nothing is appended to ' + this.kind);
      this.children.push(typeof c === 'object' ? c : String(c));
    }
  }
  addEventListener(name, fn) { this.listeners[name] = fn; }
  getBoundingClientRect() { return {left: 1, top: 1, width: 1, height: 1}; }
  focus() { focused = this; }
  key(name) { this.listeners.keydown({key: name, preventDefault() {}}); }
}
let focused = null;

// Where a shape or a text of a drawing begins and ends from left to right.
function extent(e) {
  const a = name => Number(e.attributes[name] || 0);
  if (e.kind === 'rect') return [a('x'), a('x') + a('width')];
  if (e.kind === 'circle') return [a('cx') - a('r'), a('cx') + a('r')];
  if (e.kind === 'line') return [Math.min(a('x1'), a('x2')), Math.max(a('x1'), a('x2'))];
  if (e.kind === 'polygon') {
    const xs = e.attributes.points.split(' ').map(p => Number(p.split(',')[0]));
    return [Math.min(...xs), Math.max(...xs)];
  }
  if (e.kind !== 'text') return [0, 0];
  const length = e.textContent.length * PIXELS, anchor = e.attributes['text-anchor'];
  const from = anchor === 'end' ? a('x') - length : anchor === 'middle' ? a('x') - length / 2 : a('x');
  return [from, from + length];
}
function inside(e, width) {
  for (const c of e.children) {
    if (typeof c === 'string') continue;
    const [from, to] = extent(c);
    if (from < -4 || to > width + 4) throw new Error(c.kind + ' "' + c.textContent + '" from ' + from + ' to ' + to + ' of ' + width);
    inside(c, c.kind === 'svg' ? Number(c.attributes.width) : width);
  }
}

function open(width) {
  const ids = {}, keys = {};
  made = [];
  global.document = {
    getElementById: id => {
      if (!ids[id]) {
        if (!page.includes('id="' + id + '"')) throw new Error('the page has no ' + id);
        ids[id] = new Element(id);
        ids[id].clientWidth = width;
      }
      return ids[id];
    },
    createElement: kind => new Element(kind),
    createElementNS: (ns, kind) => new Element(kind),
    querySelectorAll: () => made.filter(e => e.dataset.ins !== undefined),
    addEventListener: (name, fn) => { keys[name] = fn; },
  };
  global.window = {};
  global.innerWidth = width;
  global.innerHeight = 800;
  document.getElementById('data').textContent = data;
  new Function(script)();
  return {ids, keys};
}

const seen = {shapes: 0, rows: 0, details: ''};
for (const width of [360, 800, 1600]) {
  const {ids, keys} = open(width);
  seen.shapes = seen.rows = seen.walked = 0;
  seen.details = '';
  const list = made.slice();
  for (const e of list.filter(x => x.dataset.ins !== undefined)) {
    e.listeners.click();
    if (ids.detail.hidden) throw new Error('nothing is shown of ' + e.kind);
    e.kind === 'tr' ? seen.rows++ : seen.shapes++;
    seen.details += ids.detail.textContent;
    if (e.listeners.pointermove) e.listeners.pointermove({clientX: 5, clientY: 5});
    if (e.kind === 'g' && !e.attributes['aria-label']) throw new Error('a shape without a name');
  }
  for (const s of list.filter(e => e.kind === 'svg' && e.attributes.role === 'listbox')) {
    if (!s.attributes['aria-label'] || s.attributes.width !== String(width)) throw new Error('a drawing without a name, or not as wide as there is room');
    inside(s, width);
    for (const key of ['Home', 'ArrowRight', 'ArrowLeft', 'End', 'Enter']) s.key(key);
    if (ids.detail.hidden || !s.attributes['aria-activedescendant']) throw new Error('keys do not choose');
    keys.keydown({key: 'Escape'});
    if (!ids.detail.hidden) throw new Error('Escape does not close');
    seen.walked++;
  }
  const rows = list.filter(e => e.kind === 'tr' && e.dataset.ins !== undefined);
  seen.order = rows.map(r => Number(r.dataset.ins));
  if (rows.length > 1) {
    rows[0].key('ArrowDown');
    if (focused !== rows[1]) throw new Error('arrows do not walk through the table');
  }
  ids.find.listeners.input({target: {value: 'nothing has this name'}});
  if (rows.some(r => !r.hidden)) throw new Error('what is not sought is shown');
  ids.order.listeners.change({target: {value: 'run'}});
  for (const id of ['title', 'tiles', 'why', 'facts', 'legend', 'operators', 'summary'])
    seen[id] = ids[id].textContent;
  seen.rest = ids['rest-list'].children.length;
}
console.log(JSON.stringify(seen));
