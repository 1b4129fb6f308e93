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
  const least = (high - low || 1) / 5 * (1 - 1e-9), unit = 10 ** Math.floor(Math.log10(least));
  const step = unit * [1, 2, 2.5, 5, 10].find((x) => x * unit >= least);
  const ticks = [];
  for (let i = Math.ceil(low / step); i * step <= high + 1e-9 * step; ++i) ticks.push(+(i * step).toPrecision(6));
  return ticks;
}

// series: [{name, colour, dash, wide, quiet, points: [[x, y]...]}]; quiet ones have no dots. A point
// may be [x, y, low, high], with an interval. log: which axes are logarithmic, 'x', 'xy' or none.
// dots: no lines. mark: a vertical line. below: names stand below, for lines that end together.
function lineChart({ title, sub, series, log = '', x, y, yRange, xTicks, dots, mark, below }) {
  series = series.filter((line) => line.points.length > 0);
  if (!series.length) return null;
  const narrow = innerWidth < 640;
  const W = narrow ? 340 : 520, H = narrow ? 280 : 330, left = 48, right = below ? 16 : 118, top = 26, bottom = 44;
  const all = series.flatMap((line) => line.points);
  const span = (k, fixed, scaled) => {
    let [low, high] = fixed || [Math.min(...all.map((p) => p[k])), Math.max(...all.map((p) => p[k]))];
    if (fixed) return [low, high];
    if (scaled) { if (k === 1 || dots) { low /= 1.25; high *= 1.25; } if (low === high) { low /= 2; high *= 2; } }
    else if (low === high) { low -= 0.5; high += 0.5; }
    return [low, high];
  };
  const logX = log.includes('x'), logY = log.includes('y');
  const [x0, x1] = dots && !logX ? [0, 1.1 * Math.max(...all.map((p) => p[0])) || 1] : span(0, null, logX), [y0, y1] = span(1, yRange, logY);
  const scale = (v, low, high, scaled) => (scaled ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low || 1));
  const px = (v) => left + scale(v, x0, x1, logX) * (W - left - right);
  const py = (v) => H - bottom - scale(v, y0, y1, logY) * (H - top - bottom);
  const label = (at, text, anchor) => s('text', { ...at, 'text-anchor': anchor, 'font-size': 12, fill: 'currentColor' }, text);
  const parts = [label({ x: 4, y: 13 }, y.label, 'start')];
  for (const t of ticksOf(y0, y1, logY)) parts.push(
    s('line', { x1: left, x2: W - right, y1: py(t), y2: py(t), stroke: 'currentColor', 'stroke-opacity': 0.14 }),
    s('line', { x1: left - 4, x2: left, y1: py(t), y2: py(t), stroke: 'currentColor', 'stroke-opacity': 0.5 }),
    label({ x: left - 7, y: py(t) + 4 }, y.tick(t), 'end'));
  // Prices have many digits: on a phone every second tick has room.
  for (const t of (xTicks || ticksOf(x0, x1, logX)).filter((_, i) => !(narrow && dots && !logX) || i % 2 === 0)) parts.push(
    s('line', { x1: px(t), x2: px(t), y1: H - bottom, y2: H - bottom + 4, stroke: 'currentColor', 'stroke-opacity': 0.5 }),
    label({ x: px(t), y: H - bottom + 17 }, x.tick(t), 'middle'));
  parts.push(s('path', { d: `M${left} ${top}V${H - bottom}H${W - right}`, fill: 'none', stroke: 'currentColor', 'stroke-opacity': 0.5 }),
    label({ x: (left + W - right) / 2, y: H - 6 }, x.label, 'middle'));
  if (mark >= x0 && mark <= x1) parts.push(s('line', { x1: px(mark), x2: px(mark), y1: top, y2: H - bottom, stroke: 'currentColor', 'stroke-opacity': 0.45, 'stroke-dasharray': '3 3' }));
  // Labels at the ends of lines, moved apart where they would overlap.
  const labels = series.map((line) => { const end = line.points[line.points.length - 1]; return { line, end, at: py(end[1]) }; }).sort((a, b) => a.at - b.at);
  labels.forEach((one, i) => { one.y = Math.max(one.at, i ? labels[i - 1].y + 14 : top); });
  if (labels[labels.length - 1].y > H - 6) for (let i = labels.length - 1, limit = H - 6; i >= 0 && labels[i].y > limit; --i, limit -= 14) labels[i].y = limit;
  for (const line of series) {
    const d = line.points.map((p, i) => `${i ? 'L' : 'M'}${px(p[0]).toFixed(1)} ${py(p[1]).toFixed(1)}`).join('');
    if (!dots) parts.push(s('path', { d, fill: 'none', style: { stroke: line.colour }, 'stroke-width': line.wide ? 2.5 : 1.8, 'stroke-dasharray': line.dash || null, 'stroke-linejoin': 'round' }));
    for (const p of line.points) {
      if (p.length > 2) parts.push(s('line', { x1: px(p[0]), x2: px(p[0]), y1: py(p[2]), y2: py(p[3]), style: { stroke: line.colour }, 'stroke-width': 1.5, 'stroke-opacity': 0.7 }));
      if (!line.quiet) parts.push(s('circle', { cx: px(p[0]), cy: py(p[1]), r: dots ? 5 : 3, style: { fill: line.colour } },
        s('title', {}, `${line.name}: ${y.tell(p[1])} at ${x.tell(p[0])}`)));
    }
  }
  // Names are in ink, which everybody can read; the square beside them has the line's colour.
  if (!below) for (const { line, y: ly, at, end } of labels) {
    const from = px(end[0]);
    if (Math.abs(ly - at) > 3 || from < W - right - 2) parts.push(s('path', { d: `M${from + (dots ? 6 : 4)} ${at}L${W - right + 7} ${ly}`, fill: 'none', style: { stroke: line.colour }, 'stroke-opacity': 0.35, 'stroke-width': 1 }));
    parts.push(s('rect', { x: W - right + 9, y: ly - 4, width: 8, height: 8, style: { fill: line.colour } }),
      label({ x: W - right + 21, y: ly + 4 }, [line.name.length > 14 ? line.name.slice(0, 13) + '…' : line.name, s('title', {}, line.name)], 'start'));
  }
  return h('figure', {}, h('figcaption', {}, title, sub ? h('span', { class: 'sub' }, sub) : null),
    s('svg', { viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': `${title}: ${y.label} over ${x.label}` }, parts), below ? legend(series) : null);
}

// parts: [{name, value, colour}] as shares of one bar.
function stack(parts) {
  const sum = parts.reduce((total, part) => total + part.value, 0);
  if (!(sum > 0)) return h('span', { class: 'sub' }, 'none');
  return h('div', { class: 'stack', role: 'img', 'aria-label': parts.filter((p) => p.value).map((p) => `${p.name} ${p.value}`).join(', ') },
    parts.filter((part) => part.value > 0).map((part) =>
      h('i', { style: { width: `${(100 * part.value) / sum}%`, background: part.colour }, title: `${part.name}: ${part.shown || part.value} of ${part.of || sum}` })));
}
const legend = (parts) => h('div', { class: 'legend' },
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
  // The drawing has its title in it.
  return h('figure', {}, h('figcaption', { class: 'unseen' }, title, sub ? `, ${sub}` : null), document.importNode(root, true));
}
