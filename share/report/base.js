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
const day = (time) => (/^\d{4}-\d\d-\d\d/.test(time) ? time.slice(0, 10) : '');
// The days on which a run was made, as far as its log says.
function daysOf(run) {
  const [from, to] = [day(run.begun), day(run.ended)];
  return from === to || !to ? from : `${from} to ${to}`;
}
const rangeOf = (i, f = percent) => `${f(i[0])} (95 %: ${f(i[1])} to ${f(i[2])})`;

const modelLink = (i) => h('a', { href: '#/model/' + encodeURIComponent(D.models[i].name) }, D.models[i].name);
// A slug may be broken after its underscores, where there is no room.
const slugParts = (slug) => slug.split(/(?<=_)/).map((part, i) => [i ? h('wbr') : null, part]);
const problemLink = (p) => h('a', { href: '#/problem/' + encodeURIComponent(p.slug) }, slugParts(p.slug));
// Rank groups have letters: a number beside a name would be read as a rank.
const groupsThere = [...new Set(D.models.map((m) => m.group))].sort((a, b) => a - b);
function groupOf(m) {
  let i = groupsThere.indexOf(m.group), name = '';
  for (++i; i > 0; i = Math.floor((i - 1) / 26)) name = String.fromCharCode(65 + ((i - 1) % 26)) + name;
  return name;
}
const groupBadge = (m) => h('span', { class: 'group', title: m.group === 1 ? 'No model is significantly better (95 %)' : `${counted(m.group - 1, 'model')} significantly better (95 %)` }, groupOf(m));
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
  return h('span', { class: 'chain' }, sample.rounds.map((round, i) => [i ? h('span', { class: 'then' }, '→') : null, verdict(round)]));
}

// The bounds of an interval as numbers, whole percents: they are not known better.
const bounds = (interval) => h('span', { class: 'bounds' }, `[${percent(interval[1], 0)}, ${percent(interval[2], 0)}]`);
// A rate from 0 to 1 as a bar, with its interval as a whisker and as numbers.
function meter(interval) {
  const [value, low, high] = Array.isArray(interval) ? interval : [interval];
  const at = (x) => `${Math.max(0, Math.min(1, x)) * 100}%`;
  return h('span', { class: 'meter', title: isNumber(low) ? `${percent(value)} %; 95 %: ${percent(low)} to ${percent(high)}` : `${percent(value)} %` },
    h('span', { class: 'track', 'aria-hidden': 'true' },
      h('i', { style: { width: at(value) } }),
      isNumber(low) ? h('u', { style: { left: at(low), width: at(high - low) } }) : null),
    h('b', {}, percent(value)), isNumber(low) ? bounds([value, low, high]) : null);
}
// A difference from -1 to 1 around a middle line.
function difference(interval) {
  const at = (x) => `${50 + 50 * Math.max(-1, Math.min(1, x))}%`;
  const signed = (x) => (x > 0 ? '+' : '') + percent(x);
  return h('span', { class: 'meter', title: rangeOf(interval, signed) },
    h('span', { class: 'centre', 'aria-hidden': 'true' }, h('i'),
      h('u', { style: { left: at(interval[1]), width: `${50 * (interval[2] - interval[1])}%` } }),
      h('b', { style: { left: at(interval[0]) } })),
    h('b', {}, signed(interval[0])), h('span', { class: 'bounds' }, `[${signed(interval[1])}, ${signed(interval[2])}]`));
}

// A file of the report: out of the page if it is in it, else beside it.
function fileLink(file) {
  let href = file.name;
  if (file.text !== null) {
    const type = file.name.endsWith('.json') ? 'application/json' : 'text/csv';
    href = file.address = file.address || URL.createObjectURL(new Blob([file.text], { type: type + ';charset=utf-8' }));
  }
  return h('a', { href, download: file.name, title: file.text === null ? 'Too large for the page: it lies beside it' : null }, file.name);
}
const downloads = () => (D.files.length ? h('p', { class: 'downloads' }, 'Download: ', D.files.map((file, i) => [i ? ', ' : '', fileLink(file)])) : null);
