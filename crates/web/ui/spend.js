// What was spent by day and label, and the budgets: a drawing, and a table behind it. What was not reported is hatched.

import { get } from './api.js';
import { fill, h, plain, problem, svg, table } from './dom.js';
import { count, money, since } from './format.js';

/** @import { BudgetView, SpendView } from '../types/page.d.ts' */

const WHILES = [['7', '7 days'], ['30', '30 days'], ['90', '90 days']];
const WIDTH = 720;
const HEIGHT = 200;

export function page(main) {
  const gone = new AbortController();
  const body = h('div', {});
  const asked = new URLSearchParams(location.search);
  const pick = h('select', { id: 'while', onchange: load }, WHILES.map(([value, words]) => h('option', { value }, words)));
  pick.value = asked.get('days') ?? '30';
  const by = h('select', { id: 'by', onchange: load }, h('option', { value: '' }, 'all runs'));
  fill(main, h('h1', {}, 'Spend'), h('div', { class: 'bar' }, h('span', { class: 'pair' }, h('label', { for: 'while' }, 'Last '), pick), h('span', { class: 'pair' }, h('label', { for: 'by' }, 'by '), by)), body);

  async function load() {
    const tz = Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC';
    history.replaceState(null, '', `/spend?days=${pick.value}`);
    try {
      const [spend, budgets] = await Promise.all([get(`/api/spend?days=${pick.value}&tz=${encodeURIComponent(tz)}`, gone.signal), get('/api/budgets', gone.signal)]);
      draw(spend, budgets);
    } catch (error) {
      if (!gone.signal.aborted) fill(body, problem(error));
    }
  }

  /** @param {SpendView} spend @param {BudgetView[]} budgets */
  function draw(spend, budgets) {
    const names = [...new Set(spend.days.flatMap((it) => Object.keys(it.labels)))].sort();
    const chosen = by.value;
    fill(by, h('option', { value: '' }, 'all runs'), names.map((name) => h('option', { value: name }, `label ${plain(name)}`)));
    by.value = names.includes(chosen) ? chosen : '';
    const sums = sumsOf(spend, Number(pick.value), by.value);
    const total = sums.flatMap((it) => [...it.parts.values()]).reduce((a, b) => ({ cost: a.cost + b.cost, held: a.held + b.held, tokens: a.tokens + b.tokens, open: a.open + b.open }), { cost: 0, held: 0, tokens: 0, open: 0 });
    const limit = budgets.find((it) => it.period === 'day' && !it.label)?.max?.cost_usd ?? null;
    const told = (it) => `${money(it.cost - it.held)}${it.held > 0 ? ` + up to ${money(it.held)} not reported` : it.open > 0 ? ', not all reported' : ''}`;
    fill(body, h('p', {}, `${told(total)}, ${count(total.tokens)} tokens, in days of ${plain(spend.tz)}.`),
      spend.days.length === 0 ? h('p', {}, 'Nothing was spent in this time, as far as it was reported.') : [chart(sums, limit),
        h('details', {}, h('summary', {}, 'As a table'), table('Spend by day', ['day', 'for', 'money', 'tokens'], sums.flatMap((it) => [...it.parts].map(([part, sum]) => [it.day, part || 'all', told(sum), count(sum.tokens)]))))],
      h('h2', {}, 'Budgets'), budgets.length === 0 ? h('p', {}, 'No budget is set. In config.toml: ', h('code', {}, '[budgets.day]'), ' ', h('code', {}, 'max_cost_usd = 50'), '.') : budgets.map(budget));
  }

  load();
  return { close: () => gone.abort() };
}

/** For each day up to today, what was used by each value of a label. */
/** @param {SpendView} spend @param {number} days @param {string} label */
function sumsOf(spend, days, label) {
  const list = [];
  const today = new Date();
  for (let back = days - 1; back >= 0; back -= 1) {
    const at = new Date(today.getFullYear(), today.getMonth(), today.getDate() - back);
    list.push({ day: [at.getFullYear(), at.getMonth() + 1, at.getDate()].map((it) => String(it).padStart(2, '0')).join('-'), parts: new Map() });
  }
  const known = new Map(list.map((it) => [it.day, it]));
  for (const it of spend.days) {
    const day = known.get(it.day);
    if (!day) continue;
    const part = label ? it.labels[label] ?? 'without it' : '';
    const sum = day.parts.get(part) ?? { cost: 0, held: 0, tokens: 0, open: 0 };
    day.parts.set(part, { cost: sum.cost + it.cost_usd, held: sum.held + it.unreported_usd, tokens: sum.tokens + it.tokens, open: sum.open + it.unreported_attempts });
  }
  return list;
}

function chart(sums, limit) {
  const useTokens = sums.every((it) => [...it.parts.values()].every((sum) => sum.cost === 0));
  const value = (sum) => (useTokens ? sum.tokens : sum.cost);
  const kinds = [...new Set(sums.flatMap((it) => [...it.parts.keys()]))].sort();
  const most = Math.max(1e-9, useTokens ? 0 : limit ?? 0, ...sums.map((it) => [...it.parts.values()].reduce((a, b) => a + value(b), 0)));
  const wide = WIDTH / sums.length;
  const bars = sums.flatMap((it, at) => {
    let top = HEIGHT;
    return [...it.parts].flatMap(([part, sum]) => {
      const height = (HEIGHT * value(sum)) / most;
      const held = useTokens ? 0 : (HEIGHT * sum.held) / most;
      top -= height;
      const place = { x: at * wide + 1, width: Math.max(1, wide - 2) };
      return [svg('rect', { ...place, y: top + held, height: Math.max(0, height - held), class: `c${kinds.indexOf(part) % 6}` }), held > 0 && svg('rect', { ...place, y: top, height: held, class: 'held' })];
    });
  }).filter(Boolean);
  const line = !useTokens && limit ? svg('line', { x1: 0, x2: WIDTH, y1: HEIGHT - (HEIGHT * limit) / most, y2: HEIGHT - (HEIGHT * limit) / most, class: 'limit' }) : null;
  const hatch = svg('defs', {}, svg('pattern', { id: 'hatch', width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' }, svg('rect', { width: 3, height: 6, class: 'hatch' })));
  const figure = svg('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': `${useTokens ? 'Tokens' : 'Money'} by day, at most ${useTokens ? count(most) : money(most)} on one; the table has the figures`, class: 'chart', preserveAspectRatio: 'none' }, hatch, bars, line);
  return h('figure', {}, h('p', { class: 'dim' }, useTokens ? count(most) : money(most)), figure, h('p', { class: 'ends dim' }, h('span', {}, sums[0].day), h('span', {}, sums[sums.length - 1].day)),
    h('figcaption', {}, kinds[0] !== '' && h('ul', { class: 'legend' }, kinds.map((kind, at) => h('li', {}, h('span', { class: `swatch c${at % 6}`, 'aria-hidden': 'true' }), ` ${plain(kind)}`))), line && h('p', { class: 'dim' }, `The line is the day's budget, ${money(limit)}.`)));
}

/** @param {BudgetView} it */
function budget(it) {
  const amount = ({ cost_usd: usd, tokens }) => [usd !== null && usd !== undefined && money(usd), tokens !== null && tokens !== undefined && `${count(tokens)} tokens`].filter(Boolean).join(', ') || money(0);
  const share = it.max.cost_usd ? [(it.used.cost_usd ?? 0) - (it.unreported.cost_usd ?? 0), it.unreported.cost_usd ?? 0, it.max.cost_usd] : [(it.used.tokens ?? 0) - (it.unreported.tokens ?? 0), it.unreported.tokens ?? 0, it.max.tokens ?? 1];
  const [sure, open] = [h('span', { class: 'sure-part' }), h('span', { class: 'held-part' })];
  sure.style.width = `${Math.min(100, (100 * share[0]) / share[2])}%`;
  open.style.width = `${Math.min(100, (100 * share[1]) / share[2])}%`;
  return h('section', { class: 'card' }, h('h3', {}, plain(it.name)), h('p', {}, `${amount(it.used)} of ${amount(it.max)} used`, it.known === false && `, ${amount(it.unreported)} of it not reported`, `; ${amount(it.reserved)} reserved for what is at work.`),
    h('span', { class: 'meter', 'aria-hidden': 'true' }, sure, open), h('p', { class: 'dim' }, it.waiting > 0 && `${it.waiting} runs wait for it. `, it.resets_at && since(it.resets_at, 'It begins anew in ', '. '), `When it is spent, runs ${it.on_exceed === 'end' ? 'end' : 'wait'}.`));
}
