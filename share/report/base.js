'use strict';
// The page's data and the small tools of all views. Nothing here or below ever parses a string as
// HTML: what models wrote becomes text nodes only.
const D = JSON.parse(document.getElementById('data').textContent);

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key === 'style') for (const [name, v] of Object.entries(value)) element.style.setProperty(name, v);
    else if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? '' : value);
  }
  element.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) =>
  fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);

// A text by its number: {text} if it is there, {left_out} if it did not fit into the page.
function textOf(number) {
  if (number === undefined) return { text: '' };
  const found = D.texts[number];
  if (typeof found === 'number') return textOf(found);
  return found === null ? { text: '', left_out: true } : { text: found };
}

const isNumber = (x) => typeof x === 'number' && isFinite(x);
const dash = '–';
const percent = (x, digits = 1) => (isNumber(x) ? (100 * x).toFixed(digits) : dash);
const times = (x) => (isNumber(x) ? x.toFixed(2) + '×' : dash);
const dollars = (x) => (!isNumber(x) ? dash : x === 0 ? '$0' : x < 0.1 ? '$' + x.toPrecision(2) : '$' + x.toFixed(2));
const micros = (ns) => (!(ns > 0) ? dash : ns < 1e5 ? (ns / 1e3).toFixed(2) : (ns / 1e3).toFixed(0));
const counted = (n, word) => `${n.toLocaleString('en')} ${word}${n === 1 ? '' : 's'}`;
function bytesOf(n) {
  if (!(n > 0)) return dash;
  for (const unit of ['B', 'kB', 'MB', 'GB']) {
    if (n < 1000 || unit === 'GB') return `${n < 10 && n !== Math.floor(n) ? n.toFixed(1) : Math.round(n)} ${unit}`;
    n /= 1000;
  }
}
const words = (name) => name.replaceAll('_', ' ');
const rangeOf = (i, f = percent) => `${f(i[0])} (95 %: ${f(i[1])} to ${f(i[2])})`;

const modelLink = (i) => h('a', { href: '#/model/' + encodeURIComponent(D.models[i].name) }, D.models[i].name);
const problemLink = (p) => h('a', { href: '#/problem/' + encodeURIComponent(p.slug) }, p.slug);
const colourOf = (i) => `var(--c${i % 8})`;
const dashOf = (i) => ['', '6 3', '2 3', '8 3 2 3'][Math.floor(i / 8) % 4];

// Verdicts that say nothing about the candidate.
const excluded = new Set(['unsupported', 'internal_error']);
function verdict(round) {
  const kind = round.strict ? 'pass' : excluded.has(round.verdict) ? 'out' : '';
  const tail = round.strict ? ` ${percent(round.score || 0, 0)} %` : '';
  return h('span', { class: 'verdict ' + kind, title: round.strict ? `pass at ${percent(round.score || 0)} % of the roofline` : words(round.verdict) }, words(round.verdict) + tail);
}
function chain(sample) {
  return h('span', { class: 'chain' }, sample.rounds.map((round, i) => [i ? h('span', { class: 'then', 'aria-label': 'then' }, '→') : null, verdict(round)]));
}

// A rate from 0 to 1 as a bar, with its interval as a whisker.
function meter(interval) {
  const [value, low, high] = Array.isArray(interval) ? interval : [interval];
  const at = (x) => `${Math.max(0, Math.min(1, x)) * 100}%`;
  return h('span', { class: 'meter', title: isNumber(low) ? `${percent(value)} %; 95 %: ${percent(low)} to ${percent(high)}` : `${percent(value)} %` },
    h('span', { class: 'track', 'aria-hidden': 'true' },
      h('i', { style: { width: at(value) } }),
      isNumber(low) ? h('u', { style: { left: at(low), width: at(high - low) } }) : null),
    h('b', {}, percent(value)));
}
// A difference from -1 to 1 around a middle line.
function difference(interval) {
  const at = (x) => `${50 + 50 * Math.max(-1, Math.min(1, x))}%`;
  const signed = (x) => (x > 0 ? '+' : '') + percent(x);
  return h('span', { class: 'meter', title: rangeOf(interval, signed) },
    h('span', { class: 'centre', 'aria-hidden': 'true' }, h('i'),
      h('u', { style: { left: at(interval[1]), width: `${50 * (interval[2] - interval[1])}%` } }),
      h('b', { style: { left: at(interval[0]) } })),
    h('b', {}, signed(interval[0])));
}
