// One model: its figures by kind of problem, verdicts by round, best and worst problems.
function byTable(model, dimension) {
  const values = Object.entries(model.by[dimension] || {});
  if (!values.length) return null;
  const order = ['easy', 'medium', 'hard'];
  values.sort((a, b) => order.indexOf(a[0]) - order.indexOf(b[0]) || a[0].localeCompare(b[0]));
  return h('section', {}, h('h3', {}, 'By ' + dimension),
    plain([dimension[0].toUpperCase() + dimension.slice(1), 'Problems', 'Score %', 'Strict pass@1 %'],
      values.map(([value, f]) => [value, String(f.problems), meter(f.score), meter(f.strict)]), 'By ' + dimension));
}

function modelView(name) {
  const index = D.models.findIndex((m) => m.name === name);
  if (index < 0) return [h('h1', {}, 'No such model'), h('p', {}, h('a', { href: '#/' }, 'The leaderboard'), ' lists those there are.')];
  const m = D.models[index], f = m.all;
  const facts = [m.run, m.protocol, m.model !== m.name ? m.model : null, m.open ? 'open weights' : null,
    m.price ? `${dollars(m.price[0])} in, ${dollars(m.price[2])} out per million tokens` : 'no price known'].filter(Boolean);
  const rounds = m.verdicts_by_round.map((counts, i) => [`Round ${i + 1}`, stack(verdictParts(counts)), String(Object.values(counts).reduce((a, b) => a + b, 0))]);
  const names = [...new Set(m.verdicts_by_round.flatMap((counts) => Object.keys(counts)))];
  const classNames = ['better', 'on_par', 'degraded', 'severely_degraded', 'unresolved'];
  const classColours = ['var(--c0)', 'var(--c2)', 'var(--c4)', 'var(--c1)', 'var(--c7)'];
  const classes = classNames.map((c, i) => ({ name: words(c), value: m.classes[c] || 0, colour: classColours[i] }));
  const movers = Object.entries(m.moved).filter(([, v]) => v > 0).map(([mover, v], i) => ({ name: words(mover), value: v, shown: bytesOf(v), of: 'a burst', colour: colourOf(i) }));
  const mine = D.problems.filter((p) => p.cells[index]).map((p) => ({ p, cell: p.cells[index], others: p.cells.filter((c, i) => c && i !== index).map((c) => c[3]) }));
  const edge = (row) => row.cell[3] - (row.others.length ? row.others.reduce((a, b) => a + b, 0) / row.others.length : 0);
  mine.sort((a, b) => b.cell[3] - a.cell[3] || edge(b) - edge(a));
  const list = (rows, title) => h('section', {}, h('h3', {}, title), plain(['Problem', 'Score %', 'Against others'],
    rows.map((r) => [problemLink(r.p), percent(r.cell[3], 0), r.others.length ? (edge(r) > 0 ? '+' : '') + percent(edge(r), 0) : dash]), title));
  const many = Math.min(6, Math.ceil(mine.length / 2));
  const others = D.models.map((other, i) => i).filter((i) => i !== index);
  return [
    h('h1', {}, m.name),
    h('div', { class: 'facts' }, facts.map((fact) => h('span', { class: 'tag' }, fact))),
    h('div', { class: 'numbers' }, [
      [groupOf(m), 'rank group, not a rank'], [percent(f.score[0]), `score % (${percent(f.score[1])} to ${percent(f.score[2])})`],
      [percent(f.strict[0]), `strict pass@1 % (${percent(f.strict[1])} to ${percent(f.strict[2])})`],
      [percent(f.within[0]), `pass within ${mostRounds()} %`], [times(f.gm), 'GM speedup over the reference'],
      [dollars(m.price || m.dollars ? m.dollars : NaN), isNumber(m.per_pass) && m.dollars ? `spent; ${dollars(m.per_pass)} per pass` : 'spent'],
    ].map(([value, what]) => h('div', {}, h('b', {}, value), h('span', {}, what)))),
    others.length ? h('p', {}, 'Compare with ', others.slice(0, 12).map((i, k) => [k ? ', ' : '', h('a', { href: `#/compare/${encodeURIComponent(m.name)}/${encodeURIComponent(D.models[i].name)}` }, D.models[i].name)]), '.') : null,
    m.finished < m.planned ? h('p', { class: 'warn' }, `${m.planned - m.finished} of ${m.planned} samples are not finished.`) : null,
    m.internal_errors ? h('p', { class: 'warn' }, `${counted(m.internal_errors, 'sample')} ended with an error of our own and count nowhere.`) : null,
    h('h2', {}, 'Strengths'),
    h('div', { class: 'grid tables' }, ['category', 'level', 'library', 'parallelism', 'split'].map((d) => (d === 'split' && Object.keys(m.by.split || {}).length < 2 ? null : byTable(m, d)))),
    h('h2', {}, 'Verdicts by round'),
    plain(['Round', 'Verdicts', 'Samples'], rounds, 'Verdicts by round', 2), legend(verdictParts(Object.fromEntries(names.map((n) => [n, 1])))),
    h('div', { class: 'grid' },
      m.pass_rounds.length > 1 ? lineChart({ title: 'Gain by round', sub: 'strict pass and score within so many rounds, %', yRange: [0, 1],
        xTicks: m.pass_rounds.map((_, i) => i + 1),
        x: { label: 'rounds at most', tick: String, tell: (v) => `round ${v}` }, y: { label: '% of problems', tick: (v) => percent(v, 0), tell: (v) => percent(v) + ' %' },
        series: [{ name: 'strict pass', colour: 'var(--c0)', points: m.pass_rounds.map((v, i) => [i + 1, v[0]]) },
          { name: 'score', colour: 'var(--c1)', points: m.score_rounds.map((v, i) => [i + 1, v[0]]) }] }) : null,
      h('section', {}, h('h3', {}, 'Speed of what passes'), stack(classes), legend(classes),
        h('h3', {}, 'Bytes by mover'), stack(movers), legend(movers),
        h('h3', {}, 'Tokens'), plain(['Input', 'cached', 'output', 'reasoning'], [m.tokens.map((n) => n.toLocaleString('en'))], 'Tokens', 0))),
    h('h2', {}, 'Best and worst problems'),
    h('div', { class: 'side' }, list(mine.slice(0, many), 'Best'), list(mine.slice(-many).reverse(), 'Worst')),
  ];
}
