// A box in which a table scrolls; its edge fades where there is more to the right.
function scroller(label, table) {
  const box = h('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': label }, table);
  const look = () => box.classList.toggle('more', box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
  box.addEventListener('scroll', look, { passive: true });
  new ResizeObserver(look).observe(box);
  return box;
}

// Tables that sort by any column, by mouse and keyboard.
// columns: [{key, label, title, num, sticky, value(row), cell(row), up}]; `up`: smaller is better.
// `cards`: on a phone every row is a card of its own, and a choice stands for the heads.
function sortable({ columns, rows, sort, label, rowClass, keep, cards }) {
  const state = keep || { key: sort.key, down: sort.down };
  const body = h('tbody');
  const heads = new Map();
  function fillBody() {
    const column = columns.find((c) => c.key === state.key) || columns[0];
    const sorted = rows.map((row, i) => ({ row, i, v: column.value(row) }));
    const none = (v) => v === null || v === undefined || (typeof v === 'number' && !isFinite(v));
    sorted.sort((a, b) => {
      if (none(a.v) || none(b.v)) return none(a.v) - none(b.v) || a.i - b.i;
      const order = typeof a.v === 'string' ? a.v.localeCompare(b.v) : a.v - b.v;
      return (state.down ? -order : order) || a.i - b.i;
    });
    body.replaceChildren(...sorted.map(({ row }, i) =>
      h('tr', { class: rowClass ? rowClass(row, sorted[i - 1] && sorted[i - 1].row, column.key) : null },
        columns.map((c) => h('td', { class: [c.num ? 'num' : '', c.sticky ? 'sticky' : '', c.wrap ? 'wrap' : '', c.heat ? 'cell' : ''].join(' ').trim() || null, style: c.heat ? c.heat(row) : null, 'data-label': cards && !c.sticky ? c.label : null }, c.cell(row))))));
    if (choice) choice.value = column.key;
    for (const [key, head] of heads) {
      if (key === state.key) head.th.setAttribute('aria-sort', state.down ? 'descending' : 'ascending');
      else head.th.removeAttribute('aria-sort');
      head.arrow.textContent = key === state.key ? (state.down ? '▼' : '▲') : '';
    }
  }
  const head = h('tr', {}, columns.map((c) => {
    const arrow = h('span', { class: 'arrow', 'aria-hidden': 'true' });
    const th = h('th', { scope: 'col', class: [c.num ? 'num' : '', c.sticky ? 'sticky' : ''].join(' ').trim() || null, title: c.title },
      h('button', { type: 'button', onclick: () => {
        if (state.key === c.key) state.down = !state.down;
        else { state.key = c.key; state.down = !c.up; }
        fillBody();
      } }, h('span', { class: c.heat ? 'slant' : null }, c.label), arrow));
    heads.set(c.key, { th, arrow });
    return th;
  }));
  const choice = cards ? h('select', { onchange: (event) => {
    state.key = event.target.value;
    state.down = !columns.find((c) => c.key === state.key).up;
    fillBody();
  } }, columns.map((c) => h('option', { value: c.key }, c.label))) : null;
  fillBody();
  const table = scroller(label, h('table', { class: cards ? 'cards' : null }, h('thead', {}, head), body));
  return cards ? h('div', {}, h('label', { class: 'sorter' }, 'Sort by', choice), table) : table;
}

// A plain table: heads and rows of nodes or strings; all columns but the first `words` are numbers.
function plain(heads, rows, label, wordColumns = 1) {
  const kind = (i) => (i >= wordColumns ? 'num' : i === 0 ? 'sticky' : null);
  return scroller(label, h('table', {},
    h('thead', {}, h('tr', {}, heads.map((head, i) => h('th', { scope: 'col', class: kind(i) }, head)))),
    h('tbody', {}, rows.map((row) => h('tr', {}, row.map((cell, i) => h('td', { class: kind(i) }, cell)))))));
}
