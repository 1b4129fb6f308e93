// The leaderboard, its filters, the list of problems and the plots.
const dimensions = ['category', 'level', 'library', 'parallelism'];
const chosen = { category: '', level: '', library: '', parallelism: '', open: false };
// A problem may have several parallelisms, or none.
const valuesIn = (p, dimension) => (dimension !== 'parallelism' ? [p[dimension]] : p.parallelism.length ? p.parallelism : ['none']);
const boardSort = { key: 'strict', down: true };
const valuesOf = (dimension) => [...new Set(D.problems.flatMap((p) => valuesIn(p, dimension)))].filter(Boolean).sort((a, b) => {
  const order = ['easy', 'medium', 'hard'];
  return order.indexOf(a) - order.indexOf(b) || a.localeCompare(b);
});
const mostRounds = () => Math.max(1, ...D.runs.map((run) => run.rounds));

// A model's figures over the chosen problems. One filter: as summarised, with intervals. Several:
// means over the problems' cells.
function figuresOf(model, index) {
  const set = dimensions.filter((d) => chosen[d]);
  if (set.length === 0) return model.all;
  if (set.length === 1) return ((model.by[set[0]] || {})[chosen[set[0]]]) || null;
  const cells = D.problems.filter((p) => set.every((d) => valuesIn(p, d).includes(chosen[d]))).map((p) => p.cells[index]).filter(Boolean);
  if (!cells.length) return null;
  const mean = (k) => [cells.reduce((sum, cell) => sum + cell[k], 0) / cells.length];
  return { problems: cells.length, strict: mean(0), score: mean(1), within: mean(2), score_within: mean(3), lenient: [NaN] };
}

function board() {
  const rounds = mostRounds();
  const ks = Object.keys(D.models[0] ? D.models[0].all.pass_at || {} : {}).map(Number);
  const k = Math.max(0, ...ks);
  const rate = (key, label, title) => ({ key, label, title, num: true, value: (r) => r.f && r.f[key] && r.f[key][0], cell: (r) => (r.f && r.f[key] && isNumber(r.f[key][0]) ? percent(r.f[key][0]) : dash) });
  const bar = (key, label, title) => ({ ...rate(key, label, title), cell: (r) => (r.f ? meter(r.f[key]) : dash) });
  const plainNumber = (key, label, title, of, show) => ({ key, label, title, num: true, value: of, cell: (r) => show(of(r)) });
  const columns = [
    { key: 'name', label: 'Model', sticky: true, up: true, value: (r) => r.m.name.toLowerCase(), cell: (r) => [
      h('span', { class: 'name' }, modelLink(r.i)),
      r.m.open ? [' ', h('span', { class: 'tag', title: 'open weights' }, 'open')] : null] },
    { key: 'group', label: 'Group', title: 'Not a rank: no model of a group is significantly better than another of it', up: true, value: (r) => r.m.group, cell: (r) => groupBadge(r.m) },
    bar('strict', 'Strict\u00a0pass@1\u00a0%', 'Right in round 1, without a finding; 95 % interval'),
    bar('score', 'Score\u00a0%', 'Mean over all problems of strict pass × min(1, fraction of the roofline), round 1; 95 % interval'),
    rate('within', `Pass in\u00a0≤\u00a0${rounds}\u00a0%`, `Strict pass in any of up to ${rounds} rounds`),
    rate('score_within', `Score in\u00a0≤\u00a0${rounds}\u00a0%`, `Score of the best of up to ${rounds} rounds`),
    !D.models.some((m) => m.price || m.dollars) ? null : { ...plainNumber('dollars', 'Price', 'Of all replies of finished samples', (r) => (r.m.price || r.m.dollars ? r.m.dollars : null), dollars), up: true },
    rate('lenient', 'Lenient\u00a0%', 'Outputs match, round 1: races and the like do not count'),
    plainNumber('good', 'PASS +Good\u00a0%', 'Strict pass and not slower than 5 % behind the reference', (r) => r.f && r.f.good, percent),
    plainNumber('gm', 'GM speedup', 'Geometric mean of speedups over the reference, of passes', (r) => r.f && r.f.gm, times),
    plainNumber('pass_x_gm', 'Pass×GM', 'Strict pass × GM speedup; not monotone', (r) => r.f && r.f.pass_x_gm, (v) => (isNumber(v) ? v.toFixed(3) : dash)),
    k > 1 ? plainNumber('pass_k', `pass@${k}\u00a0%`, `Chance that one of ${k} samples passes, unbiased`, (r) => (r.f === r.m.all ? r.f.pass_at[k] : null), percent) : null,
    { ...plainNumber('unsupported', 'Unsupported\u00a0%', 'Samples that the node could not run: excluded from every rate', (r) => r.m.unsupported, percent), up: true },
    D.models.some((m) => m.unsupported > 0) ? plainNumber('strictest', 'Score if\u00a0unsupported fails\u00a0%', 'The score over all problems with unsupported taken for a failure', (r) => (r.f === r.m.all ? r.m.score_if_unsupported_fails : null), percent) : null,
  ].filter(Boolean);
  const rows = D.models.map((m, i) => ({ m, i, f: figuresOf(m, i) })).filter((r) => !chosen.open || r.m.open);
  const grouped = (row, before, key) => (key === 'strict' && before && before.m.group !== row.m.group ? 'group-start' : null);
  return sortable({ columns, rows, keep: boardSort, label: 'Leaderboard', rowClass: grouped, cards: true });
}

function select(name, options, value, onchange) {
  return h('label', {}, name, h('select', { onchange: (event) => onchange(event.target.value) },
    options.map(([v, text]) => h('option', { value: v, selected: v === value }, text))));
}

function leaderboardView() {
  const holder = h('div');
  const refresh = () => {
    const several = dimensions.filter((d) => chosen[d]).length > 1;
    holder.replaceChildren(board(), several ? h('p', { class: 'note' }, 'Several filters at once: means over the problems, without intervals; groups are those over all problems.') : '');
  };
  const filters = h('div', { class: 'filters' },
    dimensions.map((d) => select(d[0].toUpperCase() + d.slice(1), [['', 'all'], ...valuesOf(d).map((v) => [v, v])], chosen[d], (v) => { chosen[d] = v; refresh(); })),
    D.models.some((m) => m.open) ? h('label', {}, h('input', { type: 'checkbox', checked: chosen.open, onchange: (event) => { chosen.open = event.target.checked; refresh(); } }), 'open weights only') : null);
  refresh();
  const samples = D.runs.reduce((sum, run) => sum + run.finished, 0);
  return [
    h('h1', {}, 'Leaderboard'),
    h('div', { class: 'facts' }, D.runs.map((run) => h('span', { class: 'tag' }, run.name, ' ', h('b', {}, [daysOf(run), `allranks ${run.version}`, `${run.profile} version ${run.profile_version}`].filter(Boolean).join(' · '))))),
    h('div', { class: 'numbers' }, [
      [D.models.length, D.models.length === 1 ? 'model' : 'models'], [D.problems.length, D.problems.length === 1 ? 'problem' : 'problems'],
      [samples.toLocaleString('en'), 'samples'], [mostRounds(), mostRounds() === 1 ? 'round' : 'rounds at most'], D.dollars > 0 ? [dollars(D.dollars), 'spent'] : null,
    ].filter(Boolean).map(([value, name]) => h('div', {}, h('b', {}, String(value)), h('span', {}, name)))),
    D.notes.map((note) => h('p', { class: 'warn' }, inline(note))),
    filters, holder,
    h('p', { class: 'note' }, 'A group is not a rank: no model of a group is significantly better than another of it (95 %), and their order means nothing. The bracketed numbers and the whiskers are 95 % intervals.'),
    downloads(),
    D.times.map((line) => h('p', { class: 'note' }, line)),
    matrix(), plotSection(true),
  ];
}

const heat = (value) => ({ background: `rgba(var(--heat), ${(0.08 + 0.62 * Math.max(0, Math.min(1, value))).toFixed(2)})` });
const matrixSort = { key: 'difficulty', down: false };
function problemTable() {
  const columns = [
    { key: 'slug', label: 'Problem', sticky: true, up: true, value: (p) => p.slug, cell: (p) => [h('span', { class: 'name' }, problemLink(p))] },
    { key: 'category', label: 'Category', up: true, value: (p) => p.category, cell: (p) => p.category },
    { key: 'level', label: 'Level', up: true, value: (p) => ['easy', 'medium', 'hard'].indexOf(p.level), cell: (p) => p.level },
    { key: 'library', label: 'Library', up: true, value: (p) => p.library, cell: (p) => p.library },
    { key: 'difficulty', label: 'Difficulty\u00a0%', num: true, title: '1 − the panel’s pass@1', value: (p) => p.difficulty, cell: (p) => percent(p.difficulty, 0) },
    ...D.models.map((m, i) => ({ key: 'm' + i, label: m.name, title: m.name + ': best score within its rounds, %', value: (p) => p.cells[i] && p.cells[i][3],
      heat: (p) => (p.cells[i] ? heat(p.cells[i][3]) : {}), cell: (p) => (p.cells[i] ? percent(p.cells[i][3], 0) : dash) })),
  ];
  return sortable({ columns, rows: D.problems, keep: matrixSort, label: 'Problems' });
}
function matrix() {
  return [h('h2', {}, 'Problems'), h('p', { class: 'note' }, 'Score within all rounds, in percent of the roofline: mean over samples.'), problemTable()];
}

const plotTitles = {
  levels: ['Strict pass by level', 'round 1, percent of problems'],
  classes: ['Speed of what passes', 'against the reference; percent of strict passes'],
  radar_category: ['Score by category', 'round 1, percent'],
  radar_library: ['Score by library', 'round 1, percent'],
  parallelism: ['Score by parallelism', 'round 1, percent'],
  strict_lenient: ['Strict against lenient', 'the gap: right results by luck'],
  rounds: ['Gain by round', 'strict pass within so many rounds, percent'],
  movers: ['Bytes by mover', 'what carries the payload of passes'],
};
// Cost against score: to the left and above is better. A free model is at 0, which no logarithm has.
function costChart() {
  const priced = D.models.map((m, i) => ({ m, i })).filter(({ m }) => isNumber(m.per_problem) && m.all.problems);
  const spread = priced.map(({ m }) => m.per_problem);
  return lineChart({ title: 'Cost against score', sub: 'round 1; bars are 95 % intervals', dots: true, log: Math.min(...spread) > 0 && Math.max(...spread) > 8 * Math.min(...spread) ? 'x' : '', yRange: [0, 1],
    x: { label: 'dollars per problem, all rounds', tick: (v) => '$' + +v.toPrecision(2), tell: dollars }, y: { label: 'score, %', tick: (v) => percent(v, 0), tell: (v) => percent(v) + ' %' },
    series: priced.map(({ m, i }) => ({ name: m.name, colour: colourOf(i), points: [[m.per_problem, ...m.all.score]] })) })
    || h('figure', {}, h('figcaption', {}, 'Cost against score'), h('p', { class: 'note' }, 'No model of this report has a known price.'));
}
// fast_p: the share of problems solved at least p times as fast as the reference. There are as many
// colours as lines.
const mostCurves = 8;
function fastChart() {
  return lineChart({ title: 'fast_p', sub: 'strict passes of round 1 that are at least p times as fast as the reference' + (D.models.length > mostCurves ? `; first ${mostCurves} models` : ''), yRange: [0, 1], mark: 1, below: true,
    x: { label: 'p: speedup over the reference', tick: (v) => String(v), tell: (v) => `p = ${v}` }, y: { label: '% of problems', tick: (v) => percent(v, 0), tell: (v) => percent(v) + ' %' },
    series: D.models.slice(0, mostCurves).map((m, i) => ({ m, i })).filter(({ m }) => m.all.problems).map(({ m, i }) => ({ name: m.name, colour: colourOf(i), quiet: true, points: m.fast_reference.map((share, k) => [k / 20, share]) })) });
}
function plotSection(headed) {
  const known = D.plots.filter((plot) => plotTitles[plot.name]);
  return [headed ? h('h2', {}, 'Plots') : null,
    h('div', { class: 'grid' }, costChart(), fastChart(), known.map((plot) => drawing(plot, ...plotTitles[plot.name]))),
    known.length ? null : h('p', { class: 'note' }, 'There are no further plots: gnuplot was not found, or was not asked for.')];
}
