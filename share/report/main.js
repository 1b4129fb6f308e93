// Routes and theme. Addresses: #/, #/problems, #/plots, #/compare/A/B, #/model/NAME, #/problem/SLUG;
// ?theme=dark or ?theme=light before the # decides over what the system prefers.
const views = {
  '': leaderboardView,
  problems: () => [h('h1', {}, 'Problems'), h('p', { class: 'lead' }, 'Score within all rounds by model, in percent of the roofline: mean over samples.'), problemTable()],
  plots: () => [h('h1', {}, 'Plots'), plotSection()],
  compare: compareView,
  model: modelView,
  problem: problemView,
  sample: sampleView,
};
const tabs = [['', 'Leaderboard'], ['problems', 'Problems'], ['plots', 'Plots'], ['compare', 'Compare']];

function decoded(part) {
  try { return decodeURIComponent(part); } catch (error) { return part; }
}
let first = true;
function show() {
  if (location.hash && !location.hash.startsWith('#/')) return;
  const [view, ...rest] = location.hash.replace(/^#\/?/, '').split('/').map(decoded);
  const known = views[view] ? view : '';
  document.getElementById('nav').replaceChildren(...tabs.map(([name, text]) => h('a', { href: '#/' + name, 'aria-current': name === known ? 'page' : null }, text)));
  const main = document.getElementById('main');
  main.replaceChildren();
  fill(main, {}, [views[known](...rest)]);
  const heading = main.querySelector('h1');
  document.title = known && heading ? `${heading.textContent} · ${D.title}` : D.title;
  scrollTo(0, 0);
  // Who moves by keyboard goes on from the new view.
  if (!first) main.focus({ preventScroll: true });
  first = false;
}

function setTheme(theme, remember) {
  document.documentElement.dataset.theme = theme;
  const button = document.getElementById('theme');
  button.textContent = theme === 'dark' ? '☀ Light' : '☾ Dark';
  button.setAttribute('aria-label', theme === 'dark' ? 'Change to light colours' : 'Change to dark colours');
  if (remember) try { localStorage.setItem('allranks-theme', theme); } catch (error) { /* not kept: no harm */ }
}
function startTheme() {
  const system = matchMedia('(prefers-color-scheme: dark)');
  let kept = new URLSearchParams(location.search).get('theme');
  if (!kept) try { kept = localStorage.getItem('allranks-theme'); } catch (error) { kept = null; }
  const fixed = kept === 'dark' || kept === 'light';
  setTheme(fixed ? kept : system.matches ? 'dark' : 'light');
  if (!fixed) system.addEventListener('change', () => setTheme(system.matches ? 'dark' : 'light'));
  document.getElementById('theme').addEventListener('click', () => setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark', true));
}

document.getElementById('foot').append(...[
  ...D.times,
  ...D.runs.map((run) => `Run ${run.name}${daysOf(run) ? ', ' + daysOf(run) : ''}: ${counted(run.finished, 'sample')}${run.unfinished ? `, ${run.unfinished} unfinished` : ''}; prompt ${run.prompt}; up to ${counted(run.rounds, 'round')}; allranks ${run.version}.`),
  'Score: mean over all problems of strict pass × min(1, fraction of the roofline). Strict pass: right at every case, without a finding but portability.',
].map((line) => h('p', {}, line)), ...[downloads()].filter(Boolean));
startTheme();
addEventListener('hashchange', show);
show();
