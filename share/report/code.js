// Source code, its differences, and statements in Markdown, as nodes.
const token = /(\/\/[^\n]*|\/\*[\s\S]*?\*\/)|("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|\b(__\w+__|auto|bool|break|case|char|class|const|constexpr|continue|default|do|double|else|enum|extern|false|float|for|if|inline|int|long|namespace|return|short|signed|sizeof|static|struct|switch|template|true|typename|union|unsigned|using|void|volatile|while|asm|include|define|pragma)\b/g;
function highlighted(line) {
  const nodes = [];
  let at = 0;
  for (const match of line.matchAll(token)) {
    if (match.index > at) nodes.push(line.slice(at, match.index));
    nodes.push(h('span', { class: match[1] ? 'c' : match[2] ? 's' : 'k' }, match[0]));
    at = match.index + match[0].length;
  }
  if (at < line.length) nodes.push(line.slice(at));
  return nodes;
}

// Longest common subsequence of lines; what is too long for the table counts as all changed.
function diffLines(a, b) {
  let start = 0, endA = a.length, endB = b.length;
  while (start < endA && start < endB && a[start] === b[start]) ++start;
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) { --endA; --endB; }
  const rows = [];
  for (let i = 0; i < start; ++i) rows.push([' ', a[i]]);
  const n = endA - start, m = endB - start;
  if (n * m <= 4e6) {
    const table = new Uint16Array((n + 1) * (m + 1));
    for (let i = n - 1; i >= 0; --i) for (let j = m - 1; j >= 0; --j)
      table[i * (m + 1) + j] = a[start + i] === b[start + j] ? table[(i + 1) * (m + 1) + j + 1] + 1 : Math.max(table[(i + 1) * (m + 1) + j], table[i * (m + 1) + j + 1]);
    let i = 0, j = 0;
    while (i < n || j < m) {
      if (i < n && j < m && a[start + i] === b[start + j]) { rows.push([' ', a[start + i]]); ++i; ++j; }
      else if (i < n && (j === m || table[(i + 1) * (m + 1) + j] >= table[i * (m + 1) + j + 1])) rows.push(['-', a[start + i++]]);
      else rows.push(['+', b[start + j++]]);
    }
  } else {
    for (let i = start; i < endA; ++i) rows.push(['-', a[i]]);
    for (let j = start; j < endB; ++j) rows.push(['+', b[j]]);
  }
  for (let i = endA; i < a.length; ++i) rows.push([' ', a[i]]);
  return rows;
}

// An answer may be the edit region alone: then it stands where the template has it.
function whole(source, template) {
  const open = template.indexOf('>>> edit'), close = template.lastIndexOf('<<< edit');
  if (open < 0 || close < 0 || source.includes('>>> edit')) return source;
  if (/#include\s*"problem\.h"/.test(source)) return source;
  const head = template.slice(0, template.indexOf('\n', open) + 1);
  return head + source.replace(/\n?$/, '\n') + template.slice(template.lastIndexOf('\n', close) + 1);
}

// What findings and compilers say of lines: {line: [text]}. They name them candidate.cu:LINE or (LINE).
function remarksOf(...texts) {
  const remarks = new Map();
  for (const line of texts.join('\n').split('\n'))
    for (const match of line.matchAll(/\b(?:candidate|solution|source)\.cu[:(](\d{1,6})\b/g)) {
      const number = Number(match[1]), known = remarks.get(number) || [];
      const text = line.trim().slice(0, 400);
      if (known.length < 4 && !known.includes(text)) remarks.set(number, [...known, text]);
    }
  return remarks;
}

function codeRow(kind, number, line) {
  return h('span', { class: 'row ' + ({ '+': 'add', '-': 'del' }[kind] || ''), 'data-n': kind === '-' ? '−' : kind === '+' ? `+ ${number}` : String(number) }, highlighted(line), '\n');
}
// `before` null: the code alone. `remarks`: as of remarksOf, below their lines.
function code(source, before, label, remarks = new Map()) {
  const lines = source.replace(/\n$/, '').split('\n');
  const rows = before === null ? lines.map((line) => [' ', line]) : diffLines(before.replace(/\n$/, '').split('\n'), lines);
  if (before !== null && !remarks.size && rows.every((row) => row[0] === ' ')) return h('p', { class: 'note' }, 'Unchanged: no line differs.');
  let number = 0;
  for (const row of rows) row.push(row[0] === '-' ? number : ++number);
  const said = (row) => (row[0] === '-' ? [] : remarks.get(row[2]) || []);
  // Unchanged lines are shown near those that changed or have a remark.
  const near = new Uint8Array(rows.length);
  rows.forEach((row, i) => {
    if (before === null || row[0] !== ' ' || said(row).length) near.fill(1, Math.max(0, i - 3), i + 4);
  });
  const shown = (row) => [codeRow(row[0], row[2], row[1]), said(row).map((text) => h('span', { class: 'row remark' }, text, '\n'))];
  const box = h('div', { class: 'rows' });
  for (let i = 0; i < rows.length;) {
    let end = i;
    while (end < rows.length && !near[end]) ++end;
    const hidden = rows.slice(i, end);
    if (hidden.length > 5) {
      const fold = h('button', { class: 'fold', type: 'button', onclick: () => fold.replaceWith(...hidden.flatMap(shown).flat()) }, `⋯ ${hidden.length} unchanged lines`);
      box.append(fold);
    } else {
      box.append(...hidden.flatMap(shown).flat());
    }
    for (i = end; i < rows.length && near[i]; ++i) box.append(...shown(rows[i]).flat());
  }
  return h('div', { class: 'code', tabindex: '0', role: 'group', 'aria-label': label }, box);
}
// Words that may be long: they scroll within their box, by keyboard too.
const textBox = (text, label) => h('pre', { class: 'text', tabindex: '0', role: 'group', 'aria-label': label }, text);

function inline(text) {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) =>
    part.startsWith('`') && part.length > 2 ? h('code', {}, part.slice(1, -1))
      : part.startsWith('**') && part.length > 4 ? h('strong', {}, part.slice(2, -2)) : part);
}
// The Markdown that statements use: headings, paragraphs, lists, tables, fences.
function markdown(text) {
  const out = h('div', { class: 'prose' });
  const lines = text.split('\n');
  const special = /^(#{1,4} |```|[-*] |\d+\. |\|)/;
  for (let i = 0; i < lines.length;) {
    const line = lines[i];
    if (!line.trim()) { ++i; continue; }
    const heading = /^(#{1,4}) (.*)/.exec(line);
    if (heading) { out.append(h('h' + Math.min(4, heading[1].length + 1), {}, inline(heading[2]))); ++i; continue; }
    if (line.startsWith('```')) {
      const block = [];
      for (++i; i < lines.length && !lines[i].startsWith('```'); ++i) block.push(lines[i]);
      ++i;
      out.append(code(block.join('\n'), null, 'Code'));
      continue;
    }
    if (line.startsWith('|')) {
      const rows = [];
      for (; i < lines.length && lines[i].startsWith('|'); ++i)
        if (!/^[|\s:-]+$/.test(lines[i])) rows.push(lines[i].replace(/^\||\|\s*$/g, '').split('|').map((cell) => h('span', {}, inline(cell.trim()))));
      if (rows.length) out.append(plain(rows[0], rows.slice(1), 'Table', 99));
      continue;
    }
    const list = /^([-*]|\d+\.) /.exec(line);
    if (list) {
      const items = [];
      for (; i < lines.length && (/^([-*]|\d+\.) /.test(lines[i]) || /^\s+\S/.test(lines[i])); ++i) {
        if (/^\s/.test(lines[i]) && items.length) items[items.length - 1] += ' ' + lines[i].trim();
        else items.push(lines[i].replace(/^([-*]|\d+\.) /, ''));
      }
      out.append(h(/\d/.test(list[1]) ? 'ol' : 'ul', {}, items.map((item) => h('li', {}, inline(item)))));
      continue;
    }
    const paragraph = [line];
    for (++i; i < lines.length && lines[i].trim() && !special.test(lines[i]); ++i) paragraph.push(lines[i]);
    out.append(h('p', {}, inline(paragraph.join(' '))));
  }
  return out;
}
