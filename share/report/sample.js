// The transcript of a sample: what the model was asked, what it replied and what the judge found,
// round by round, as a conversation.
const turn = (who, kind, ...content) => h('div', { class: 'turn ' + kind }, h('h3', {}, who), content);

// The words of a reply, and its source (`shown`, or the note that the page has none) where they left
// it out: between fences with nothing in them. Findings are shown at the source's lines.
function replyParts(text, shown) {
  const parts = [];
  let placed = false;
  const lines = text.split('\n');
  let words = [];
  const flush = () => { if (words.join('').trim()) parts.push(h('pre', { class: 'words' }, words.join('\n').trim())); words = []; };
  for (let i = 0; i < lines.length; ++i) {
    const fence = /^\s*(`{3,}|~{3,})/.exec(lines[i]);
    if (!fence) { words.push(lines[i]); continue; }
    const block = [];
    for (++i; i < lines.length && !lines[i].trim().startsWith(fence[1]); ++i) block.push(lines[i]);
    flush();
    const own = !placed && shown && !block.join('').trim();
    parts.push(own ? shown : code(block.join('\n'), null, 'Code of the reply'));
    placed = placed || own;
  }
  flush();
  if (!placed && shown) {
    parts.push(h('p', { class: 'note' }, 'What was judged:'), shown);
  }
  return parts;
}

function exchange(p, sample, i) {
  const round = sample.rounds[i], template = textOf(p.template).text;
  const asked = textOf(i === 0 ? p.prompt : sample.rounds[i - 1].feedback);
  const source = textOf(round.source), reply = textOf(round.reply), finding = textOf(round.text), log = textOf(round.log);
  const remarks = remarksIn(round);
  const shown = source.text ? code(whole(source.text, template), null, `Source of round ${i + 1}`, remarks)
    : source.left_out ? missing(sample, i, 'source.cu') : null;
  const answer = reply.text ? replyParts(reply.text, shown)
    : [reply.left_out ? missing(sample, i, 'reply.txt') : null, shown || h('p', { class: 'note' }, 'The reply is not in the run’s folder.')];
  return h('section', { class: 'exchange', 'aria-label': `Round ${i + 1}` },
    h('h2', {}, `Round ${i + 1}`, h('span', { class: 'sub' }, ` ${words(round.kind || '')}`)),
    turn(i === 0 ? 'Prompt' : 'Feedback', 'asked', asked.text ? textBox(asked.text, i === 0 ? 'Prompt' : `Feedback before round ${i + 1}`)
      : asked.left_out ? missing(sample, Math.max(0, i - 1), i === 0 ? 'prompt.json' : 'feedback.md') : h('p', { class: 'note' }, 'It is not in the run’s folder.')),
    turn(D.models[sample.model].name, 'replied', answer),
    turn('Judge', 'judged', h('p', {}, verdict(round), round.strict && isNumber(round.reference) ? ` ${times(round.reference)} the reference’s speed` : '', !round.strict && round.lenient ? ' outputs match: a lenient pass' : ''),
      remarks.size ? h('p', { class: 'note' }, `Lines ${[...remarks.keys()].sort((a, b) => a - b).join(', ')} of the source carry what is said of them.`) : null,
      finding.text ? textBox(finding.text, `Findings of round ${i + 1}`) : finding.left_out ? missing(sample, i, 'verdict.json') : null,
      log.text ? h('details', {}, h('summary', {}, 'Compiler log'), textBox(log.text, `Compiler log of round ${i + 1}`)) : null,
      round.cases && round.cases.length ? h('details', {}, h('summary', {}, 'Cases'), caseTable(p, sample, round)) : null));
}

function sampleView(slug, model, number) {
  const p = D.problems.find((x) => x.slug === slug);
  const index = D.models.findIndex((m) => m.name === model);
  const mine = p ? p.samples.filter((x) => x.model === index && x.folder) : [];
  const sample = mine.find((x) => String(x.sample) === number);
  if (!sample || p.withheld) return [h('h1', {}, 'No such transcript'), h('p', {}, h('a', { href: '#/problems' }, 'Problems'), ' have those that are in the page.')];
  const ends = { rounds: 'it had all its rounds', fast: 'it was fast enough', request: 'a request failed' };
  return [
    h('h1', {}, 'Transcript: ', p.title || p.slug),
    h('div', { class: 'facts' }, h('span', { class: 'tag' }, 'problem ', h('b', {}, problemLink(p))), h('span', { class: 'tag' }, 'model ', h('b', {}, modelLink(index))), h('span', { class: 'tag' }, 'sample ', h('b', {}, String(sample.sample)))),
    h('p', {}, chain(sample), ends[sample.stopped] ? h('span', { class: 'sub' }, ` ended: ${ends[sample.stopped]}`) : null),
    mine.length > 1 ? h('p', {}, 'Other samples of it: ', mine.filter((x) => x !== sample).map((x, i) => [i ? ', ' : '', sampleLink(p, x, `sample ${x.sample}`)]), '.') : null,
    sample.rounds.map((round, i) => exchange(p, sample, i)),
  ];
}
