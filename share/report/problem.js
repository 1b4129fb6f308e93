// One problem: who solved it how fast, and the solutions themselves.
const bestOf = (p, model) => p.samples.find((x) => x.model === model && x.best);
// To the transcript, where the page has it.
const sampleLink = (p, x, ...text) => (x.folder && !p.withheld ? h('a', { href: `#/sample/${encodeURIComponent(p.slug)}/${encodeURIComponent(D.models[x.model].name)}/${x.sample}`, title: 'Transcript' }, text) : text);
const sampleName = (x) => `${D.models[x.model].name}, sample ${x.sample}`;

// Lines over the payload's size, one per model: its best solution.
function sizeCharts(p) {
  const timed = p.cases.map((c, i) => ({ ...c, i })).filter((c) => c.kind === 'timed' && c.bytes > 0 && c.roofline > 0).sort((a, b) => a.bytes - b.bytes);
  if (!timed.length || new Set(timed.map((c) => c.bytes)).size < 2) return null;
  const lines = (value) => {
    const own = D.models.map((m, i) => {
      const sample = bestOf(p, i), round = sample && sample.rounds[sample.best_round];
      const points = !round || !round.strict ? [] : timed.flatMap((c) => (round.cases || []).filter((row) => row[0] === c.i && row[2] > 0).map((row) => [c.bytes, value(c.bytes, row[2])]));
      return { name: m.name, colour: colourOf(i), dash: dashOf(i), points };
    });
    const fixed = (name, key, extra) => ({ name, quiet: true, points: timed.filter((c) => c[key] > 0).map((c) => [c.bytes, value(c.bytes, c[key])]), ...extra });
    return [fixed('roofline', 'roofline', { colour: 'var(--ink)', wide: true, dash: '7 4' }), fixed('reference', 'reference', { colour: 'var(--soft)', dash: '2 3' }), ...own];
  };
  const x = { label: 'payload that must reach a rank', tick: bytesOf, tell: bytesOf };
  const slow = Math.max(...timed.map((c) => c.bytes / c.roofline)) < 1;  // tokens and flags, not payload
  const unit = slow ? 'MB/s' : 'GB/s', scale = slow ? 1000 : 1;
  return h('div', { class: 'grid' },
    lineChart({ title: 'Time of a call', sub: 'each model’s best solution', log: 'xy', x, y: { label: 'µs, modelled', tick: (v) => (v >= 1 ? String(Math.round(v)) : String(v)), tell: (v) => v.toFixed(2) + ' µs' }, series: lines((bytes, ns) => ns / 1e3) }),
    lineChart({ title: 'Bandwidth', sub: 'payload / time of a call', log: 'xy', x, y: { label: `${unit}, modelled`, tick: (v) => String(v >= 1 ? Math.round(v) : +v.toPrecision(1)), tell: (v) => `${v.toFixed(1)} ${unit}` }, series: lines((bytes, ns) => (bytes / ns) * scale) }));
}

function resultTable(p) {
  const rows = D.models.map((m, i) => ({ m, i, cell: p.cells[i], samples: p.samples.filter((x) => x.model === i) })).filter((r) => r.samples.length);
  const number = (key, label, k) => ({ key, label, num: true, value: (r) => r.cell && r.cell[k], cell: (r) => (r.cell ? percent(r.cell[k]) : dash) });
  return sortable({ label: 'Results by model', cards: true, rows, sort: { key: 'sw', down: true }, columns: [
    { key: 'name', label: 'Model', sticky: true, up: true, value: (r) => r.m.name, cell: (r) => h('span', { class: 'name' }, modelLink(r.i)) },
    number('s', 'Strict pass@1 %', 0), number('c', 'Score %', 1), number('w', 'Pass within %', 2), number('sw', 'Score within %', 3),
    { key: 'chains', label: 'Samples: verdicts by round', up: true, value: (r) => r.samples.length, cell: (r) => h('div', { class: 'chains' }, r.samples.map((x) => h('div', {}, sampleLink(p, x, chain(x))))) },
  ] });
}

function caseTable(p, sample, round) {
  const rows = (round.cases || []).map((row) => ({ c: p.cases[row[0]], v: row[1] || 'pass', call: row[2], alone: row[3], moved: row[4] || {} }));
  const kinds = ['timed', 'visible', 'drawn'];
  rows.sort((a, b) => kinds.indexOf(a.c.kind) - kinds.indexOf(b.c.kind) || a.c.name.localeCompare(b.c.name, 'en', { numeric: true }));
  const what = (c) => (c.kind === 'drawn' ? h('span', { class: 'sub' }, ` w${c.world} ` + Object.entries(c.params).map(([key, value]) => key + value).join(' ')) : null);
  if (!rows.length) return h('p', { class: 'note' }, 'No case ran, or its figures are in the run’s folder only.');
  // Times of cases that are not timed say nothing: there ranks enter late.
  for (const r of rows) if (r.c.kind !== 'timed') r.call = r.alone = 0;
  const ratio = (a, b) => (a > 0 && b > 0 ? a / b : NaN);
  return plain(['Case', 'Verdict', 'Call µs', 'Alone µs', 'GB/s', 'Roofline %', 'vs reference', 'vs baseline', '× NCCL', 'Moved in a burst'],
    rows.map((r) => [[r.c.name, what(r.c)], h('span', { class: 'verdict ' + (r.v === 'pass' ? 'pass' : '') }, words(r.v)), micros(r.call), micros(r.alone),
      isNumber(ratio(r.c.bytes, r.call)) ? ratio(r.c.bytes, r.call).toFixed(1) : dash, percent(ratio(r.c.roofline, r.call)), times(ratio(r.c.reference, r.call)), times(ratio(r.c.baseline, r.call)), times(ratio(r.c.nccl, r.call)),
      Object.entries(r.moved).map(([mover, n]) => `${words(mover)} ${bytesOf(n)}`).join(', ') || dash]), 'Cases', 2);
}

const missing = (sample, i, file) => h('p', { class: 'note' }, 'Left out for the page’s size: ', sample.folder ? `${sample.folder}/round-${i + 1}/${file} in the run’s folder.` : `${file} in the sample’s folder.`);
function words_(sample, i, number, file, title) {
  const { text, left_out } = textOf(number);
  if (left_out) return missing(sample, i, file);
  return text ? h('details', {}, h('summary', {}, title), textBox(text, title)) : null;
}
const remarksIn = (round) => remarksOf(textOf(round.text).text, textOf(round.log).text);
// One round of a sample: verdict, findings, figures, code against the template or the round before.
function roundBox(p, sample, i, before, compact) {
  const round = sample.rounds[i], template = textOf(p.template).text, source = textOf(round.source), finding = textOf(round.text);
  const base = before === undefined ? template : whole(textOf(sample.rounds[before].source).text, template);
  const detail = [
    h('p', {}, verdict(round), ' ', round.strict ? [isNumber(round.reference) ? `${times(round.reference)} the reference’s speed` : '', isNumber(round.baseline) ? `, ${times(round.baseline)} the baseline’s` : '', isNumber(round.nccl) ? `, ${times(round.nccl)} NCCL’s` : '', round.band ? h('span', { class: 'sub' }, ` (${times(round.band[0])} to ${times(round.band[1])} of the reference on perturbed profiles)`) : ''] : null,
      !round.strict && round.lenient ? h('span', { class: 'sub' }, ' outputs match: a lenient pass') : null),
    finding.text ? textBox(finding.text, 'Findings') : finding.left_out ? missing(sample, i, 'verdict.json') : null,
    words_(sample, i, round.log, 'compiler.log', 'Compiler log'),
    source.text ? code(whole(source.text, template), base || null, 'Source, against ' + (before === undefined ? 'the template' : `round ${before + 1}`), remarksIn(round))
      : source.left_out ? missing(sample, i, 'source.cu') : h('p', { class: 'note' }, round.answer && round.answer !== 'source' ? `No source: the reply is “${words(round.answer)}”.` : 'The source is not in the page.'),
  ];
  if (compact) return detail;
  return h('section', { class: 'round' }, h('h3', {}, `Round ${i + 1}`, h('span', { class: 'sub' }, ` ${round.kind}${isNumber(round.dollars) ? ', ' + dollars(round.dollars) : ''}${round.finish && round.finish !== 'stop' ? ', ended by ' + round.finish : ''}`)),
    detail, round.cases && round.cases.length ? h('details', {}, h('summary', {}, 'Cases'), caseTable(p, sample, round)) : null, words_(sample, i, round.feedback, 'feedback.md', 'What the model was told next'));
}

function extremes(p) {
  const top = p.samples.find((x) => x.top), bottom = p.samples.find((x) => x.bottom);
  if (!top || top === bottom) return null;
  const box = (title, sample) => h('div', { class: 'panel' }, h('h3', {}, title), h('p', { class: 'sub' }, sampleLink(p, sample, sampleName(sample)), `, round ${sample.best_round + 1}`), roundBox(p, sample, sample.best_round, undefined, true));
  return [h('h2', {}, 'Best against worst'), h('p', { class: 'note' }, 'Code against the template: added and removed lines are marked.'), h('div', { class: 'side' }, box('Best', top), box('Worst', bottom))];
}

function solutions(p) {
  const shown = p.samples.filter((x) => x.folder);
  if (!shown.length) return null;
  const holder = h('div'), state = { sample: Math.max(0, shown.findIndex((x) => x.top)), against: 'template' };
  const refresh = () => {
    const sample = shown[state.sample];
    holder.replaceChildren(h('p', {}, sampleLink(p, sample, 'Transcript of this sample')), ...sample.rounds.map((round, i) => roundBox(p, sample, i, state.against === 'before' && i > 0 && textOf(sample.rounds[i - 1].source).text ? i - 1 : undefined)));
  };
  refresh();
  return [h('h2', {}, 'Solutions, round by round'),
    h('div', { class: 'filters' },
      select('Sample', shown.map((x, i) => [String(i), `${sampleName(x)}: ${x.rounds.map((r) => words(r.verdict)).join(' → ')}`]), String(state.sample), (v) => { state.sample = Number(v); refresh(); }),
      select('Code against', [['template', 'the template'], ['before', 'the round before']], state.against, (v) => { state.against = v; refresh(); })),
    shown.length < p.samples.length ? h('p', { class: 'note' }, 'A big run: each model’s best and worst sample are in the page, all of them in the run’s folder.') : null, holder];
}

function problemView(slug) {
  const p = D.problems.find((x) => x.slug === slug);
  if (!p) return [h('h1', {}, 'No such problem'), h('p', {}, h('a', { href: '#/problems' }, 'Problems'), ' lists those there are.')];
  const top = p.samples.find((x) => x.top);
  const round = top && top.rounds[top.best_round];
  const tag = (name, value) => (value ? h('span', { class: 'tag' }, name + ' ', h('b', {}, value)) : null);
  return [
    h('h1', {}, p.title || p.slug),
    h('div', { class: 'facts' }, tag('', p.slug), tag('category', p.category), tag('level', p.level), tag('library', p.library), tag('family', p.family), tag('parallelism', p.parallelism.join(', ')), tag('difficulty', isNumber(p.difficulty) ? percent(p.difficulty, 0) + ' %' : '')),
    h('h2', {}, 'Results'), resultTable(p),
    sizeCharts(p),
    round && round.cases && round.cases.length ? [h('h2', {}, 'Cases of the best solution'), h('p', { class: 'note' }, sampleName(top) + `, round ${top.best_round + 1}. Times are modelled.`), caseTable(p, top, round)] : null,
    p.withheld ? [h('h2', {}, 'Texts'), h('p', { class: 'note' }, `This problem is ${p.split}: its statement, and what was written about it, stay out of the page. allranks report --private takes them in.`)] : [extremes(p), solutions(p), problemTexts(p)],
  ];
}

function problemTexts(p) {
  const statement = textOf(p.statement).text, template = textOf(p.template).text, prompt = textOf(p.prompt).text;
  return [
    h('h2', {}, 'The problem'),
    statement ? h('details', {}, h('summary', {}, 'Statement'), markdown(statement)) : null,
    template ? h('details', {}, h('summary', {}, 'Template'), code(template, null, 'Template')) : null,
    prompt ? h('details', {}, h('summary', {}, 'Prompt, as it was sent'), textBox(prompt, 'Prompt')) : null,
    !statement && !template ? h('p', { class: 'note' }, 'Statement and template are not in the run’s folder.') : null,
  ];
}
