// Charts that the page draws itself: lines over logarithmic or plain axes, and stacked bars.
function ticksOf(low, high, log) {
  if (log) {
    const ticks = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); ++e) {
      const decade = 10 ** e;
      if (decade >= low * 0.999 && decade <= high * 1.001) ticks.push(decade);
    }
    // Within less than two decades, ones between help.
    if (ticks.length < 2) for (const e of [...new Set(ticks.concat(10 ** Math.floor(Math.log10(low))))]) for (const m of [2, 5]) if (m * e >= low && m * e <= high) ticks.push(m * e);
    return ticks.sort((a, b) => a - b);
  }
  const step = [0.1, 0.2, 0.25, 0.5, 1, 2, 5].find((x) => (high - low) / x <= 5) || 10;
  const ticks = [];
  for (let t = Math.ceil(low / step) * step; t <= high + 1e-9; t += step) ticks.push(Math.round(t * 1e6) / 1e6);
  return ticks;
}

// series: [{name, colour, dash, wide, quiet, points: [[x, y]...]}]; quiet ones have no dots.
function lineChart({ title, sub, series, log, x, y, yRange, xTicks }) {
  series = series.filter((line) => line.points.length > 0);
  if (!series.length) return null;
  const narrow = innerWidth < 640;
  const W = narrow ? 340 : 480, H = narrow ? 250 : 290, left = 40, right = 112, top = 12, bottom = 40;
  const all = series.flatMap((line) => line.points);
  const span = (k, fixed) => fixed || [Math.min(...all.map((p) => p[k])), Math.max(...all.map((p) => p[k]))];
  let [x0, x1] = span(0), [y0, y1] = span(1, yRange);
  if (log) { y0 /= 1.25; y1 *= 1.25; if (x0 === x1) { x0 /= 2; x1 *= 2; } } else if (x0 === x1) { x0 -= 0.5; x1 += 0.5; }
  const f = log ? Math.log10 : (v) => v;
  const px = (v) => left + ((f(v) - f(x0)) / (f(x1) - f(x0))) * (W - left - right);
  const py = (v) => H - bottom - ((f(v) - f(y0)) / (f(y1) - f(y0) || 1)) * (H - top - bottom);
  const parts = [];
  for (const t of ticksOf(y0, y1, log)) parts.push(
    s('line', { x1: left, x2: W - right, y1: py(t), y2: py(t), stroke: 'currentColor', 'stroke-opacity': 0.14 }),
    s('text', { x: left - 7, y: py(t) + 4, 'text-anchor': 'end', 'font-size': 11.5, fill: 'currentColor', 'fill-opacity': 0.75 }, y.tick(t)));
  for (const t of xTicks || ticksOf(x0, x1, log)) parts.push(
    s('line', { x1: px(t), x2: px(t), y1: H - bottom, y2: H - bottom + 4, stroke: 'currentColor', 'stroke-opacity': 0.5 }),
    s('text', { x: px(t), y: H - bottom + 17, 'text-anchor': 'middle', 'font-size': 11.5, fill: 'currentColor', 'fill-opacity': 0.75 }, x.tick(t)));
  parts.push(s('line', { x1: left, x2: W - right, y1: H - bottom, y2: H - bottom, stroke: 'currentColor', 'stroke-opacity': 0.5 }),
    s('text', { x: (left + W - right) / 2, y: H - 5, 'text-anchor': 'middle', 'font-size': 11.5, fill: 'currentColor', 'fill-opacity': 0.75 }, x.label));
  // Labels at the ends of lines, moved apart where they would overlap.
  const labels = series.map((line) => ({ line, at: py(line.points[line.points.length - 1][1]), end: line.points[line.points.length - 1] })).sort((a, b) => a.at - b.at);
  labels.forEach((label, i) => { label.y = Math.max(label.at, i ? labels[i - 1].y + 13.5 : top); });
  const over = labels[labels.length - 1].y - (H - 6);
  if (over > 0) for (let i = labels.length - 1, limit = H - 6; i >= 0 && labels[i].y > limit; --i, limit -= 13.5) labels[i].y = limit;
  for (const line of series) {
    const d = line.points.map((p, i) => `${i ? 'L' : 'M'}${px(p[0]).toFixed(1)} ${py(p[1]).toFixed(1)}`).join('');
    parts.push(s('path', { d, fill: 'none', style: { stroke: line.colour }, 'stroke-width': line.wide ? 2.5 : 1.8, 'stroke-dasharray': line.dash || null, 'stroke-linejoin': 'round' }));
    if (!line.quiet) for (const p of line.points) parts.push(s('circle', { cx: px(p[0]), cy: py(p[1]), r: 3, style: { fill: line.colour } },
      s('title', {}, `${line.name}: ${y.tell(p[1])} at ${x.tell(p[0])}`)));
  }
  for (const { line, y: ly, at, end } of labels) {
    const from = px(end[0]);
    if (Math.abs(ly - at) > 3 || from < W - right - 2) parts.push(s('path', { d: `M${from + 4} ${at}L${W - right + 7} ${ly}`, fill: 'none', style: { stroke: line.colour }, 'stroke-opacity': 0.45, 'stroke-width': 1 }));
    parts.push(s('text', { x: W - right + 10, y: ly + 4, 'font-size': 11.5, style: { fill: line.colour } }, line.name.length > 16 ? line.name.slice(0, 15) + '…' : line.name, s('title', {}, line.name)));
  }
  return h('figure', {}, h('figcaption', {}, title, sub ? h('span', { class: 'sub' }, sub) : null),
    s('svg', { viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': title }, parts));
}

// parts: [{name, value, colour}] as shares of one bar.
function stack(parts) {
  const sum = parts.reduce((total, part) => total + part.value, 0);
  if (!(sum > 0)) return h('span', { class: 'sub' }, 'none');
  return h('div', { class: 'stack', role: 'img', 'aria-label': parts.filter((p) => p.value).map((p) => `${p.name} ${p.value}`).join(', ') },
    parts.filter((part) => part.value > 0).map((part) =>
      h('i', { style: { width: `${(100 * part.value) / sum}%`, background: part.colour }, title: `${part.name}: ${part.shown || part.value} of ${part.of || sum}` })));
}
const legend = (parts) => h('div', { class: 'legend', 'aria-hidden': 'true' },
  parts.map((part) => h('span', {}, h('i', { style: { background: part.colour } }), part.name)));

const verdictColours = {
  pass: 'var(--c2)', wrong_result: 'var(--c1)', race: 'var(--c3)', deadlock: 'var(--c4)', memory_error: 'var(--c6)', crash: '#9a6324',
  timeout: '#b9a13a', compile_error: 'var(--c0)', edit_violation: '#6d7f99', forbidden_api: '#4f6d7a', no_communication: '#a65c7c',
  impossible: '#333f55', tampering: '#7d1d1d', no_answer: '#9aa0a6', unsupported: '#c7ccd3', internal_error: '#e3e6ea',
};
function verdictParts(counts) {
  const order = Object.keys(verdictColours);
  return Object.entries(counts).sort((a, b) => order.indexOf(a[0]) - order.indexOf(b[0]))
    .map(([name, value]) => ({ name: words(name), value, colour: verdictColours[name] || 'var(--c7)' }));
}

// A drawing by gnuplot. Its texts were escaped by who wrote it; what could act is dropped anyway.
function drawing(plot, title, sub) {
  const read = new DOMParser().parseFromString(plot.svg, 'image/svg+xml');
  const root = read.documentElement;
  if (root.nodeName !== 'svg' || read.querySelector('parsererror')) return null;
  for (const element of [root, ...root.querySelectorAll('*')]) {
    if (/^(script|foreignobject|a|image|style|animate\w*|set)$/i.test(element.localName)) element.remove();
    for (const attribute of [...element.attributes])
      if (/^on/i.test(attribute.name) || (/href$/i.test(attribute.name) && !attribute.value.startsWith('#'))) element.removeAttribute(attribute.name);
  }
  root.removeAttribute('width');
  root.removeAttribute('height');
  root.setAttribute('role', 'img');
  root.setAttribute('aria-label', title);
  return h('figure', {}, h('figcaption', {}, title, sub ? h('span', { class: 'sub' }, sub) : null), document.importNode(root, true));
}
