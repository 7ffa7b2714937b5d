'use strict';
// All names come from the model: they are only ever set as text, and as keys of maps.
const D = JSON.parse(document.getElementById('data').textContent);
const NS = 'http://www.w3.org/2000/svg', COLOURS = 8;
const byId = id => document.getElementById(id);
const ins = D.instructions, steps = D.steps, sum = D.instructions_ms || 1;

// --- numbers as text ---

const fixed = x => x >= 1e4 ? Math.round(x).toLocaleString('en') : x >= 100 ? x.toFixed(0)
  : x >= 10 ? x.toFixed(1) : x >= 1 ? x.toFixed(2) : x > 0 ? x.toPrecision(2) : '0';
const time = ms => ms >= 1000 ? fixed(ms / 1000) + ' s' : ms >= 1 ? fixed(ms) + ' ms' : fixed(ms * 1000) + ' µs';
const size = b => b >= 1048576 ? fixed(b / 1048576) + ' MiB' : b >= 1024 ? fixed(b / 1024) + ' KiB' : b + ' bytes';
const percent = x => (x >= 10 || x === 0 ? x.toFixed(0) : x.toFixed(1)) + ' %';
// One unit for a column or an axis.
const unit = sum >= 1 ? 'ms' : 'µs', inUnit = ms => sum >= 1 ? ms : ms * 1000;
const count = (n, what) => n + ' ' + what + (n === 1 ? '' : 's');

// --- elements ---

function fill(e, attributes, children) {
  for (const a in attributes) e.setAttribute(a, attributes[a]);
  e.append(...children);
  return e;
}
const el = (kind, attributes, ...children) => fill(document.createElement(kind), attributes, children);
const svg = (kind, attributes, ...children) => fill(document.createElementNS(NS, kind), attributes, children);
const text = (x, y, words, attributes) => svg('text', {x, y, ...attributes}, words);

const pen = (canvas => canvas.getContext ? canvas.getContext('2d') : null)(document.createElement('canvas'));
if (pen) pen.font = '11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const widthOf = words => pen ? pen.measureText(words).width * 1.04 : words.length * 6.5;
// As much of a name as there is room for: its end, which tells names of one model apart, from a
// slash on if that will do; '' if hardly anything would be left.
function fit(words, room) {
  if (widthOf(words) <= room) return words;
  const parts = words.split('/');
  for (let k = 1; k < parts.length; k++)
    if (widthOf('…/' + parts.slice(k).join('/')) <= room) return '…/' + parts.slice(k).join('/');
  let n = words.length - 1;
  while (n > 3 && widthOf('…' + words.slice(-n)) > room) n--;
  return n > 3 ? '…' + words.slice(-n) : '';
}

// --- the graph, out of the text form: "main:@3 = dot(a,main:@2) -> ..." ---

const byName = new Map(), users = ins.map(() => []);
ins.forEach(i => {
  i.name = i.text.split(' = ')[0];
  byName.set(i.name, i);
  const call = i.text.slice(i.name.length + 3).split(' -> ')[0].replace(/\[.*\](?=\()/s, '');
  const open = call.indexOf('('), args = open < 0 ? '' : call.slice(open + 1, call.lastIndexOf(')'));
  i.inputs = args.split(',').map(a => byName.get(a.trim())).filter(Boolean);
  i.inputs.forEach(p => users[p.index].push(i));
  i.steps = [];
});
steps.forEach(s => { if (ins[s.instruction]) ins[s.instruction].steps.push(s); });
ins.forEach(i => {
  i.flops = i.steps.reduce((a, s) => a + s.flops, 0);
  i.moved = i.steps.reduce((a, s) => a + s.moved, 0);
  i.nodes = i.steps.map(s => s.nodes).find(Boolean) || '';
  i.kernel = i.steps.map(s => s.kernel + (s.detail ? ' (' + s.detail + ')' : '')).join(', ');
  i.short = i.name.replace(/^main:/, '');
  i.node = i.nodes.split('; ')[0].replace(/ \([^()]*\)$/, '');
  // "/layer1/conv2/Conv (Conv)": that it is a Conv, its operator says.
  const kind = (/ \(([^()]*)\)$/.exec(i.nodes.split('; ')[0]) || [])[1];
  i.tail = kind && i.node.endsWith('/' + kind) ? i.node.slice(0, -kind.length - 1) : i.node;
});
const hot = ins.filter(i => i.ms > 0), slowest = hot.slice().sort((a, b) => b.ms - a.ms);

// Operators, slowest first; the first ones have a letter and a colour of their own.
const groups = [...hot.reduce((m, i) => m.set(i.group, [...m.get(i.group) || [], i]), new Map())]
  .map(([name, list]) => ({name, list, ms: list.reduce((a, i) => a + i.ms, 0)}))
  .sort((a, b) => b.ms - a.ms);
groups.forEach((g, n) => {
  g.letter = n < COLOURS ? String.fromCharCode(65 + n) : '';
  g.fill = 'k' + (n < COLOURS ? n + 1 : 0);
});
const groupOf = new Map(groups.map(g => [g.name, g]));
const nobody = {letter: '', fill: 'k0'};
const group = i => groupOf.get(i.group) || nobody;
function key(g) {
  return svg('svg', {width: 16, height: 16, 'aria-hidden': 'true'},
    svg('rect', {width: 16, height: 16, rx: 3, class: g.fill}),
    text(8, 12, g.letter, {'text-anchor': 'middle', class: 'on'}));
}
const label = i => i.short + ' ' + i.group + ', ' + time(i.ms) + ', ' + percent(100 * i.ms / sum) + ' of the time'
  + (i.share ? ', ' + percent(i.share) + ' of the limit' : '');
const tip = i => label(i).replace(/, /g, '\n').replace(' ', ': ') + (i.nodes ? '\n' + i.nodes.slice(0, 300) : '');

// --- choosing ---

let chosen = null;
function mark(i) {
  chosen = i;
  document.querySelectorAll('[data-ins]').forEach(e => {
    const on = i !== null && e.dataset.ins === String(i.index);
    e.classList.toggle('chosen', on);
    e.setAttribute('aria-selected', on);
  });
}
function row(list, name, ...value) {
  list.append(el('dt', {}, name), el('dd', {}, ...value));
}
function links(list) {
  return list.slice(0, 40).flatMap(x => {
    const a = el('a', {role: 'button', tabindex: 0}, x.name);
    a.addEventListener('click', () => choose(x));
    a.addEventListener('keydown', e => { if (e.key === 'Enter') choose(x); });
    return [a, ' '];
  });
}
const stepText = s => s.kernel + (s.detail ? ' (' + s.detail + ')' : '') + ' on ' + s.device + ', ' + s.type + ', '
  + size(s.bytes) + ' in ' + s.place + ' at ' + s.offset + ', needed in steps ' + s.first + ' to ' + s.last
  + (s.why_not ? '; not ' + s.why_not : '');
function choose(i) {
  const box = byId('detail'), list = el('dl', {}), close = el('button', {'aria-label': 'close'}, 'Close');
  mark(i);
  close.addEventListener('click', clear);
  box.textContent = '';
  box.append(close, el('code', {}, i.text.length > 2000 ? i.text.slice(0, 2000) + ' ...' : i.text), list);
  row(list, 'Time', time(i.ms) + ', ' + percent(100 * i.ms / sum) + ' of the instructions’ time'
    + (i.share ? ', ' + percent(i.share) + ' of the limit' : ''));
  if (i.flops && i.ms) row(list, 'Speed', fixed(i.flops * 1e-6 / i.ms) + ' GFLOP/s'
    + (i.done < i.flops ? ', ' + fixed(i.done * 1e-6 / i.ms) + ' really done' : ''));
  if (i.moved && i.ms) row(list, 'Bytes', size(i.moved) + ', ' + fixed(i.moved * 1e-6 / i.ms) + ' GB/s');
  i.steps.forEach(s => row(list, 'Kernel', stepText(s)));
  if (i.nodes) row(list, 'Nodes of the model', i.nodes);
  if (i.inputs.length) row(list, 'Reads', ...links(i.inputs));
  if (users[i.index].length) row(list, 'Is read by', ...links(users[i.index]));
  box.hidden = false;
  hideTip();
}
function clear() {
  mark(null);
  byId('detail').hidden = true;
  hideTip();
}
function showTip(words, x, y) {
  const t = byId('tip');
  t.textContent = words;
  t.hidden = false;
  const w = t.offsetWidth, h = t.offsetHeight;
  t.style.left = Math.max(4, Math.min(x + 14, innerWidth - w - 4)) + 'px';
  t.style.top = (y + 18 + h > innerHeight ? Math.max(4, y - h - 10) : y + 18) + 'px';
}
function hideTip() { byId('tip').hidden = true; }
document.addEventListener('keydown', e => { if (e.key === 'Escape') clear(); });

// --- drawings: each is a list of instructions to walk through, drawn anew for every width ---

function frame(name, width, height, words) {
  const s = svg('svg', {width, height, viewBox: [0, 0, width, height].join(' '), role: 'listbox', tabindex: 0,
    'aria-label': words});
  s.items = [];
  s.name = name;
  let at = -1;
  const go = n => {
    if (!s.items.length) return;
    if (s.items[at]) s.items[at].classList.remove('at');
    at = Math.max(0, Math.min(n, s.items.length - 1));
    const e = s.items[at], place = e.getBoundingClientRect();
    e.classList.add('at');
    s.setAttribute('aria-activedescendant', e.id);
    showTip(tip(ins[e.dataset.ins]), place.left + place.width / 2, place.top + place.height / 2);
  };
  const keys = {ArrowRight: () => go(at + 1), ArrowDown: () => go(at + 1), ArrowLeft: () => go(at - 1),
    ArrowUp: () => go(at - 1), Home: () => go(0), End: () => go(s.items.length - 1),
    Enter: () => { if (at >= 0) choose(ins[s.items[at].dataset.ins]); }};
  keys[' '] = keys.Enter;
  s.addEventListener('keydown', e => {
    if (!keys[e.key]) return;
    e.preventDefault();
    keys[e.key]();
  });
  s.addEventListener('blur', hideTip);
  byId(name).append(s);
  return s;
}
function item(s, i, shapes) {
  const e = svg('g', {class: 'item', role: 'option', id: s.name + '-' + s.items.length, 'aria-label': label(i),
    'aria-selected': chosen === i}, ...shapes);
  e.dataset.ins = i.index;
  if (chosen === i) e.classList.add('chosen');
  e.addEventListener('click', () => choose(i));
  e.addEventListener('pointermove', p => showTip(tip(i), p.clientX, p.clientY));
  e.addEventListener('pointerleave', hideTip);
  s.append(e);
  s.items.push(e);
}

// Round numbers from 0 to `end`, at most `most` of them.
function ticks(end, most) {
  const rough = end / Math.max(most, 1), ten = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(m => m * ten).find(m => m >= rough), out = [];
  for (let n = 0; n * step <= end * 1.0001; n++) out.push(+(n * step).toPrecision(12));
  return out;
}
// Powers of ten, with 2 and 5 between them where there is room.
function logTicks(low, high, most) {
  const out = [], decades = Math.log10(high / low), between = decades * 3 <= most ? [1, 2, 5] : [1];
  const every = Math.max(1, Math.ceil(decades / most));
  for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p += between.length > 1 ? 1 : every)
    between.forEach(m => out.push(+(m * 10 ** p).toPrecision(6)));
  return out.filter(v => v >= low && v <= high);
}
const plain = v => v >= 1e6 || (v > 0 && v < 1e-3) ? v.toExponential(0) : String(v);

// What is hardly wider than its edge has none: it would be all edge.
const box = (x, y, width, height, g) =>
  svg('rect', {x, y, width, height, class: (Math.min(width, height) < 5 ? 'thin ' : '') + 'shape ' + g.fill});
const letterAt = (x, y, g, room) => text(x, y, room ? g.letter : '', {'text-anchor': 'middle', class: 'on'});
// A line across for every value of the one axis, short ones below for those of the other.
const across = (left, right, y, words) => [svg('line', {x1: left, x2: right, y1: y, y2: y, class: 'axis'}),
  text(left - 5, y + 4, words, {'text-anchor': 'end'})];
const below = (x, from, bottom, words) => [svg('line', {x1: x, x2: x, y1: from, y2: bottom + 4, class: 'axis'}),
  text(x, bottom + 16, words, {'text-anchor': 'middle'})];
const lineBetween = (x1, y1, x2, y2, dash) => svg('line', {x1, y1, x2, y2, class: 'roof', 'stroke-dasharray': dash || ''});

// --- the timeline: on narrow screens in several lines ---

function timeline(width) {
  const lines = Math.max(1, Math.min(3, Math.ceil(900 / width))), bar = 34, line = bar + 24;
  const s = frame('timeline', width, lines * line, 'timeline of ' + count(hot.length, 'instruction'));
  const inner = width - 2, part = sum / lines;
  const lineOf = t => Math.min(lines - 1, Math.floor(t / part + 1e-9));
  let at = 0;
  hot.forEach(i => {
    const shapes = [], g = group(i);
    for (let begin = at, end = at + i.ms; begin < end;) {
      const n = lineOf(begin), stop = n === lines - 1 ? end : Math.min(end, (n + 1) * part);
      const w = Math.max((stop - begin) / part * inner, .3), x = 1 + (begin - n * part) / part * inner, y = n * line + 2;
      shapes.push(box(x, y, w, bar, g), letterAt(x + w / 2, y + bar / 2 + 4, g, w > 14));
      if (stop <= begin) break;
      begin = stop;
    }
    item(s, i, shapes);
    at += i.ms;
  });
  ticks(inUnit(sum), width * lines / 90).forEach(v => {
    const t = v / inUnit(1), n = lineOf(t), x = 1 + (t - n * part) / part * inner, y = n * line + bar;
    s.append(svg('line', {x1: x, x2: x, y1: y + 3, y2: y + 8, class: 'axis'}));
    const edge = x < 30 ? 'start' : x > width - 30 ? 'end' : 'middle';
    s.append(text(edge === 'start' ? Math.max(x, 2) : edge === 'end' ? Math.min(x, width - 2) : x, y + 19,
      plain(v) + ' ' + unit, {'text-anchor': edge}));
  });
}

// --- the treemap: a rectangle that is cut along its longer side, largest first ---

function cut(items, x, y, w, h, place) {
  const all = items.reduce((a, i) => a + i.ms, 0);
  if (!items.length || all <= 0) return;
  if (items.length === 1) { place(items[0], x, y, w, h); return; }
  let n = 0, part = 0;
  do part += items[n++].ms; while (n < items.length - 1 && part < all / 2);
  const f = part / all;
  if (w > h) {
    cut(items.slice(0, n), x, y, w * f, h, place);
    cut(items.slice(n), x + w * f, y, w * (1 - f), h, place);
  } else {
    cut(items.slice(0, n), x, y, w, h * f, place);
    cut(items.slice(n), x, y + h * f, w, h * (1 - f), place);
  }
}
function cell(s, g, i, x, y, w, h) {
  const inside = svg('svg', {x, y, width: Math.max(w - 1, .5), height: Math.max(h - 1, .5), class: 'on'});
  const name = fit(i.tail || i.short, w - 8), took = fit(time(i.ms), w - 8);
  if (w > 14 && h > 16) inside.append(text(4, 12, name || g.letter));
  if (w > 30 && h > 30 && took === time(i.ms)) inside.append(text(4, 25, took));
  item(s, i, [box(x, y, Math.max(w - 1, .5), Math.max(h - 1, .5), g), inside]);
}
function treemap(width) {
  const height = Math.round(Math.max(300, Math.min(520, width * .6))), head = 16;
  const s = frame('treemap', width, height, 'time by operator and instruction');
  cut(groups, 0, 0, width, height, (g, x, y, w, h) => {
    const letter = g.letter ? g.letter + ' ' : '', words = letter + fit(g.name, w - 6 - widthOf(letter));
    const top = w > 60 && h > 48 ? head : 0;
    if (top) s.append(text(x + 3, y + 12, words));
    cut(g.list.slice().sort((a, b) => b.ms - a.ms), x, y + top, w, h - top, (i, a, b, c, d) => cell(s, g, i, a, b, c, d));
  });
}

// --- the roofline ---

const arithmetics = {floats: 'floats', bytes: 'bytes', bf16: 'bfloat16'};
const peaks = {floats: D.limits.gflops, bytes: D.limits.bytes_gflops, bf16: D.limits.bf16_gflops};
const measured = hot.filter(i => i.done > 0 && i.moved > 0);
const used = Object.keys(arithmetics).filter(k => measured.some(i => i.kind === k));
const dashes = {memory: '', middle: '8 3', cache: '3 3'};
const widths = [['memory', D.limits.gbytes, 'memory'],
  ['middle', D.limits.middle_gbytes, 'up to ' + size(D.limits.middle_bytes || 0)],
  ['cache', D.limits.cache_gbytes, 'up to ' + size(D.limits.cache_bytes || 0)]].filter(w => w[1] > 0);

function dot(kind, x, y, r, fill) {
  const shape = (r < 6 ? 'thin ' : '') + 'shape ' + fill, d = r * 1.2;
  if (kind === 'bytes') return svg('rect', {x: x - r * .9, y: y - r * .9, width: r * 1.8, height: r * 1.8, class: shape});
  if (kind === 'bf16')
    return svg('polygon', {points: [[x, y - d], [x + d, y], [x, y + d], [x - d, y]].map(p => p.join(',')).join(' '), class: shape});
  return svg('circle', {cx: x, cy: y, r, class: shape});
}
// Of the operations that are really done, so none is above the roofs.
const intensity = i => i.done / i.moved, speed = i => i.done * 1e-6 / i.ms;
const plotHeight = width => Math.round(Math.max(280, Math.min(440, width * .6)));
function roofline(width) {
  if (!measured.length || !(D.limits.gflops > 0) || !widths.length) {
    byId('roofline').append(el('p', {class: 'soft'}, 'There are no products here, or the limits of the machine are not known.'));
    return;
  }
  const height = plotHeight(width), left = 48, right = width - 14, top = 26, bottom = height - 38;
  const s = frame('roofline', width, height, 'speed of ' + count(measured.length, 'instruction') + ' by operations per byte');
  const peak = Math.max(...used.map(k => peaks[k])), fastest = Math.max(...widths.map(w => w[1]));
  const xs = measured.map(intensity).concat(widths.map(w => peak / w[1]), .5), ys = measured.map(speed).concat(peak);
  const x0 = Math.min(...xs) / 1.7, x1 = Math.max(...xs) * 1.7, y0 = Math.min(...ys) / 1.7, y1 = Math.max(...ys) * 1.5;
  const X = v => left + Math.log(v / x0) / Math.log(x1 / x0) * (right - left);
  const Y = v => bottom - Math.log(v / y0) / Math.log(y1 / y0) * (bottom - top);
  logTicks(x0, x1, (right - left) / 34).forEach(v => s.append(...below(X(v), top, bottom, plain(v))));
  logTicks(y0, y1, (bottom - top) / 22).forEach(v => s.append(...across(left, right, Y(v), plain(v))));
  s.append(text(4, 14, 'GFLOP/s'), text(right, height - 6, 'operations per byte', {'text-anchor': 'end'}));
  widths.forEach(([name, gbytes]) => {
    const from = Math.max(x0, y0 / gbytes), to = Math.min(x1, peak / gbytes);
    s.append(lineBetween(X(from), Y(from * gbytes), X(to), Y(to * gbytes), dashes[name]));
  });
  used.forEach(k => s.append(lineBetween(X(Math.max(x0, peaks[k] / fastest)), Y(peaks[k]), right, Y(peaks[k]))));
  measured.slice().sort((a, b) => b.ms - a.ms).forEach(i => {
    const r = 4 + 11 * Math.sqrt(i.ms / sum), x = X(intensity(i)), y = Y(speed(i)), g = group(i);
    item(s, i, [dot(i.kind, x, y, r, g.fill), letterAt(x, y + 4, g, r > 6)]);
  });
}

// --- memory over the run ---

const live = steps.filter(s => s.place === 'scratch' && s.last >= s.first && s.bytes > 0 && ins[s.instruction]);
// The host's and a card's are counted from 0 each: the one is drawn above the other.
let peakBytes = 0;
for (const device of new Set(live.map(s => s.device))) {
  const here = live.filter(s => s.device === device), base = peakBytes;
  here.forEach(s => { s.at = base + s.offset; });
  peakBytes = here.reduce((most, s) => Math.max(most, s.at + s.bytes), base);
}
function memory(width) {
  if (!live.length) {
    byId('memory').append(el('p', {class: 'soft'}, 'No scratch memory is used.'));
    return;
  }
  const height = plotHeight(width), left = 48, right = width - 14, top = 26, bottom = height - 38;
  const [one, name] = peakBytes >= 1048576 ? [1048576, 'MiB'] : peakBytes >= 1024 ? [1024, 'KiB'] : [1, 'bytes'];
  const s = frame('memory', width, height, 'scratch memory: ' + count(live.length, 'value') + ', ' + size(peakBytes) + ' in all');
  const n = Math.max(1, steps.length);
  const X = v => left + v / n * (right - left), Y = b => bottom - b / peakBytes * (bottom - top);
  ticks(n, (right - left) / 50).filter(v => v === Math.round(v))
    .forEach(v => s.append(...below(X(v), bottom, bottom, plain(v))));
  ticks(peakBytes / one, (bottom - top) / 36).forEach(v => s.append(...across(left, right, Y(v * one), plain(v))));
  s.append(text(4, 14, name), text(right, height - 6, 'steps', {'text-anchor': 'end'}));
  live.forEach(v => {
    const i = ins[v.instruction], g = group(i), x = X(v.first), y = Y(v.at + v.bytes);
    const w = X(v.last + 1) - x, h = Math.max(Y(v.at) - y, .7);
    item(s, i, [box(x, y, w, h, g), letterAt(x + w / 2, y + h / 2 + 4, g, w > 14 && h > 13)]);
  });
}

// --- the head ---

function reads() {
  const by = new Map();
  steps.forEach(s => { if (s.flops > 0) by.set(s.reads, (by.get(s.reads) || 0) + s.flops); });
  const all = [...by.values()].reduce((a, b) => a + b, 0);
  const words = ([type, flops]) => type.replace(/_type$/, '') + (by.size > 1 ? ' ' + percent(100 * flops / all) : '');
  return [...by].sort((a, b) => b[1] - a[1]).map(words).join(', ');
}
function head() {
  const r = D.run, t = D.total_ms, products = reads();
  document.title = D.model + ': where the time goes';
  byId('title').textContent = D.model;
  const tile = (name, value, more) =>
    byId('tiles').append(el('div', {}, el('span', {}, name), el('b', {}, value), el('span', {}, more)));
  tile('Time of a run', time(t.average), 'median ' + time(t.median) + ', least ' + time(t.min) + ', 99 % below ' + time(t.p99));
  tile('Rate', fixed(D.rate) + ' /s', 'batch ' + D.batch);
  tile('Sum of the instructions', time(D.instructions_ms), count(hot.length, 'instruction') + ' with time');
  const limit = hot.reduce((a, i) => a + i.share * i.ms, 0) / sum;
  if (limit > 0) tile('Of the machine’s limits', percent(limit), 'used by the instructions, weighted by their time');
  if (peakBytes) tile('Scratch memory', size(peakBytes), count(steps.length, 'step'));
  byId('why').textContent = 'The two times differ because they are measured apart: the time of a run is the mean of the '
    + 'middle half of ' + count(D.runs, 'plain run') + ', the sum adds up the means of the single instructions in other '
    + 'runs with a clock around each of them' + (r.threads > 1 ? '; an instruction’s time is that on the wall, while '
    + r.threads + ' threads share its work' : '') + '.'
    + (D.busy < .95 ? ' Other work had the processor for ' + percent(100 - 100 * D.busy) + ' of the time.' : '');
  const fact = (name, value) => { if (value) row(byId('facts'), name, value); };
  fact('Machine', (r.device ? r.device + '; ' : '') + (r.machine ? r.machine + ', ' : '') + count(r.cores, 'core'));
  fact('Target', r.target);
  fact('Threads', r.threads ? String(r.threads) : '');
  fact('Instruction set', r.isa);
  fact('Precision', (r.precision || 'as the model has it') + (products ? '; products read ' + products : ''));
  fact('Engine', 'version ' + r.version);
  fact('Date', r.date);
  fact('Command', r.command);
  byId('summary').textContent = D.summary;
  groups.slice(0, COLOURS).forEach(g => byId('legend').append(named(g, g.name)));
  if (groups.length > COLOURS) byId('legend').append(named(nobody, 'others'));
  roofs();
}
function roofs() {
  if (!measured.length || !widths.length) return;
  const sample = (width, e) => svg('svg', {width, height: 16, 'aria-hidden': 'true'}, e);
  const put = (e, words) => byId('roofs').append(el('span', {}, e, words));
  widths.forEach(w => put(sample(30, lineBetween(0, 8, 30, 8, dashes[w[0]])), w[2] + ': ' + fixed(w[1]) + ' GB/s'));
  used.forEach(k => put(sample(16, dot(k, 8, 8, 6, 'k0')),
    'products of ' + arithmetics[k] + ': ' + fixed(peaks[k]) + ' GFLOP/s'));
}

// --- tables ---

const cellOf = ([value, kind]) => el('td', {class: kind || ''}, value);
const headOf = names => el('thead', {}, el('tr', {},
  ...names.map(([name, kind]) => el('th', {scope: 'col', class: kind || ''}, name))));
const number = ms => inUnit(ms).toFixed(3);
const shareBar = g => svg('svg', {width: 100, height: 10, 'aria-hidden': 'true'},
  svg('rect', {width: 100, height: 10, rx: 2, class: 'track'}),
  svg('rect', {width: 100 * g.ms / sum, height: 10, rx: 2, class: g.fill}));
const named = (g, name, kind) => el('span', {class: 'named'}, key(g), el('span', {class: kind || ''}, name));
function operators() {
  const line = (name, n, ms, share, bar) => el('tr', {}, ...[[name], [String(n), 'n'], [number(ms), 'n'],
    [n ? number(ms / n) : '', 'n wide'], [share, 'n'], [bar, 'wide']].map(cellOf));
  const body = el('tbody', {}), total = line('Total', hot.length, D.instructions_ms, hot.length ? '100 %' : '', '');
  groups.forEach(g => body.append(line(named(g, g.name), g.list.length, g.ms, percent(100 * g.ms / sum), shareBar(g))));
  byId('operators').append(el('table', {}, headOf([['Operator'], ['Count', 'n'], ['Total ' + unit, 'n'],
    ['Each ' + unit, 'n wide'], ['Share', 'n'], ['', 'wide']]), body, el('tfoot', {}, total)));
}
const rows = [];
function moveTo(e, n) {
  const shown = rows.filter(r => !r.hidden), at = shown.indexOf(e) + n;
  if (shown[at]) shown[at].focus();
}
function rowOf(i) {
  const tr = el('tr', {tabindex: rows.length ? -1 : 0, 'aria-selected': false}, ...[[i.short], [number(i.ms), 'n'],
    [percent(100 * i.ms / sum), 'n'], [i.share ? percent(i.share) : '', 'n'], [named(group(i), i.group, 'wide')],
    [i.node, 'wide'], [i.kernel, 'wide']].map(cellOf));
  tr.dataset.ins = i.index;
  tr.addEventListener('click', () => choose(i));
  tr.addEventListener('keydown', e => {
    const n = {ArrowDown: 1, ArrowUp: -1}[e.key];
    if (n) { e.preventDefault(); moveTo(tr, n); }
    if (e.key === 'Enter') choose(i);
  });
  rows.push(tr);
  return tr;
}
function tables() {
  const body = el('tbody', {}), others = ins.filter(i => !(i.ms > 0));
  slowest.forEach(i => body.append(rowOf(i)));
  byId('list').append(el('table', {role: 'grid', 'aria-label': 'instructions'}, headOf([['Instruction'],
    [unit, 'n'], ['Time', 'n'], ['Limit', 'n'], [el('span', {class: 'wide'}, 'Operator')],
    ['Node of the model', 'wide'], ['Kernel', 'wide']]), body));
  byId('rest').hidden = !others.length;
  byId('rest-title').textContent = count(others.length, 'line') + ' without time: constants, parameters, views';
  others.forEach(i => {
    const line = el('code', {}, i.text.length > 300 ? i.text.slice(0, 300) + ' ...' : i.text);
    byId('rest-list').append(el('div', {}, line));
  });
  byId('find').addEventListener('input', e => {
    const word = e.target.value.toLowerCase();
    rows.forEach(r => {
      const i = ins[r.dataset.ins];
      r.hidden = !(i.text + ' ' + i.nodes + ' ' + i.kernel + ' ' + i.group).toLowerCase().includes(word);
    });
    const first = rows.find(r => !r.hidden);
    rows.forEach(r => r.setAttribute('tabindex', r === first ? 0 : -1));
  });
  byId('order').addEventListener('change', e => {
    rows.sort((a, b) => e.target.value === 'run' ? a.dataset.ins - b.dataset.ins
      : ins[b.dataset.ins].ms - ins[a.dataset.ins].ms);
    body.append(...rows);
  });
}

// --- all of it ---

const drawings = {timeline, treemap, roofline, memory}, drawn = {};
function draw() {
  for (const name in drawings) {
    const width = Math.floor(byId(name).clientWidth);
    if (!(width > 0) || drawn[name] === width) continue;
    drawn[name] = width;
    byId(name).textContent = '';
    drawings[name](width);
  }
}
head();
operators();
tables();
draw();
if (window.ResizeObserver) {
  const watcher = new ResizeObserver(draw);
  Object.keys(drawings).forEach(name => watcher.observe(byId(name)));
}
