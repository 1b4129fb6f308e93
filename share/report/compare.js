// Two models, problem by problem.
function compareView(a, b) {
  const names = D.models.map((m) => m.name);
  if (names.length < 2) return [h('h1', {}, 'Compare'), h('p', {}, 'There is one model only.')];
  if (!names.includes(a)) a = names[0];
  if (!names.includes(b) || b === a) b = names.find((n) => n !== a);
  const go = (x, y) => { location.hash = `#/compare/${encodeURIComponent(x)}/${encodeURIComponent(y)}`; };
  const ia = names.indexOf(a), ib = names.indexOf(b);
  const pair = D.pairs.find((p) => p.a === a && p.b === b), mirrored = D.pairs.find((p) => p.a === b && p.b === a);
  const turn = (i) => (pair ? i : [-i[0], -i[2], -i[1]]);
  const found = pair || mirrored;
  const rows = D.problems.filter((p) => p.cells[ia] && p.cells[ib]);
  const column = (i, name) => ({ key: 'm' + i, label: name, num: true, value: (p) => p.cells[i][3], cell: (p) => meter(p.cells[i][3]) });
  const gap = (p) => p.cells[ia][3] - p.cells[ib][3];
  const wins = rows.filter((p) => gap(p) > 0.005).length, losses = rows.filter((p) => gap(p) < -0.005).length;
  const row = (label, key, show = (f) => percent(f[0])) => [label, show(D.models[ia].all[key]), show(D.models[ib].all[key])];
  const price = (i) => dollars(D.models[i].price || D.models[i].dollars ? D.models[i].dollars : NaN);
  return [
    h('h1', {}, 'Compare two models'),
    h('div', { class: 'filters' }, select('First', names.map((n) => [n, n]), a, (v) => go(v, b)), select('Second', names.map((n) => [n, n]), b, (v) => go(a, v))),
    plain(['Figure', a, b], [row('Score %', 'score', meter), row('Strict pass@1 %', 'strict', meter), row('Pass within all rounds %', 'within', meter), row('Lenient pass %', 'lenient', meter),
      row('GM speedup', 'gm', times), ['Price', price(ia), price(ib)]], 'Figures'),
    h('h2', {}, 'Difference'),
    found ? [plain(['First − second', 'Percentage points, 95 %'], [['Score', difference(turn(found.score))], ['Strict pass@1', difference(turn(found.strict))]], 'Difference'),
      h('p', { class: 'note' }, `Paired over ${counted(found.problems, 'problem')}, clustered by family. An interval that excludes the middle is a significant difference (95 %).`)]
      : h('p', { class: 'note' }, 'These two are not paired: their runs have different profiles.'),
    h('h2', {}, 'Problem by problem'),
    h('p', {}, `${a} is ahead in ${wins}, ${b} in ${losses}, of ${rows.length}. Score within all rounds, %.`),
    sortable({ label: 'Problem by problem', sort: { key: 'gap', down: true }, rows, columns: [
      { key: 'slug', label: 'Problem', sticky: true, up: true, value: (p) => p.slug, cell: (p) => problemLink(p) },
      { key: 'level', label: 'Level', up: true, value: (p) => ['easy', 'medium', 'hard'].indexOf(p.level), cell: (p) => p.level },
      column(ia, a), column(ib, b),
      { key: 'gap', label: 'Difference', num: true, value: gap, cell: (p) => (gap(p) > 0 ? '+' : '') + percent(gap(p), 0) }] }),
  ];
}
