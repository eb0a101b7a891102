// The morning after: what needs a person, what was done, what was not, what it cost.

import { get } from './api.js';
import { fill, h, plain } from './dom.js';
import { count, money, span, time } from './format.js';

/** @import { BudgetView, Report, ReportItem } from '../types/page.d.ts' */

const GROUPS = [['needs_you', 'Needs you'], ['done', 'Done'], ['not_done', 'Not done'], ['waiting', 'Waiting'], ['running', 'Running']];
const WHILES = [['', 'since you last looked'], ['12h', '12 hours'], ['24h', '24 hours'], ['168h', '7 days']];

export function report(main) {
  const body = h('div', {});
  const chosen = new URLSearchParams(location.search).get('since') ?? '';
  const pick = h('select', { id: 'while', onchange: () => { history.replaceState(null, '', pick.value ? `/report?since=${pick.value}` : '/report'); load(); } },
    WHILES.map(([value, words]) => h('option', { value, selected: value === chosen }, words)));
  fill(main, h('h1', {}, 'Report'), h('p', {}, h('label', { for: 'while' }, 'For '), pick), body);
  const gone = new AbortController();

  async function load() {
    fill(body, h('p', { class: 'dim' }, 'Asking\u2026'));
    try {
      draw(body, await get(`/api/report${pick.value ? `?since=${encodeURIComponent(pick.value)}` : ''}`, gone.signal));
    } catch (error) {
      if (!gone.signal.aborted) fill(body, h('p', { class: 'problem', role: 'alert' }, plain(error.message), error.hint ? ` (${plain(error.hint)})` : ''));
    }
  }

  load();
  return { close: () => gone.abort() };
}

/** @param {HTMLElement} body @param {Report} told */
function draw(body, told) {
  const { spent, night } = told;
  fill(body,
    h('p', { class: 'dim' }, 'From ', time(told.since), ' to ', time(told.now)),
    told.config_problems.map((it) => h('p', { class: 'problem' }, plain(it))),
    GROUPS.filter(([group]) => told[group].length > 0).map(([group, words]) => [h('h2', {}, `${words} (${told[group].length})`), told[group].map(item)]),
    GROUPS.every(([group]) => told[group].length === 0) && h('p', {}, 'No run went on or ended in this time.'),
    h('h2', {}, 'Spent'),
    h('p', {}, `${money(spent.reported_usd)} reported`, spent.unreported_runs > 0 && `; ${spent.unreported_runs} of the runs did not report all of it, up to ${money(spent.unreported_usd)} more`, '.'),
    told.budgets.map(budgetOf),
    h('h2', {}, 'The daemon'),
    night.problem && h('p', { class: 'truth' }, plain(night.problem)),
    night.known_from && night.known_from > told.since && h('p', { class: 'truth' }, 'Nothing is known of what happened to daemons before ', time(night.known_from), '.'),
    night.lost_runs > 0 && h('p', { class: 'truth' }, `${night.lost_runs} of the runs ended without their end being seen.`),
    night.held_since && h('p', {}, 'Everything is paused since ', time(night.held_since), '.'),
    night.starts.map((start) => h('p', {}, time(start.at), ' a daemon started', start.before === 'died' ? ' after the one before it died' : start.before === 'stopped' ? ' after a stop' : start.before === 'replaced' ? ' in place of another' : '', start.rebooted ? '; the machine had restarted' : '', '.')),
    night.missed.map((missed) => h('p', { class: 'truth' }, `Schedule ${plain(missed.trigger)} missed ${missed.skipped + missed.late} times, the latest at `, time(missed.due_at), ` (${missed.skipped} without a run).`)),
    night.starts.length === 0 && night.missed.length === 0 && !night.problem && h('p', {}, 'It ran without a break.'));
}

/** @param {BudgetView} budget */
function budgetOf(budget) {
  const told = ({ cost_usd: usd, tokens }) => [usd !== null && usd !== undefined && money(usd), tokens !== null && tokens !== undefined && `${count(tokens)} tokens`].filter(Boolean).join(', ') || money(0);
  return h('p', {}, `Budget ${plain(budget.name)}: ${told(budget.used)} of ${told(budget.max)}`, budget.known === false && `, ${told(budget.unreported)} of it not reported`, budget.waiting > 0 && `; ${budget.waiting} runs wait for it`, '.');
}

/** @param {ReportItem} it */
function item(it) {
  return h('a', { class: 'row', href: `/runs/${it.id}` },
    h('span', { class: 'head' }, h('strong', {}, plain(it.name ?? it.id.slice(0, 6))), ' ', h('span', { class: 'state' }, plain([it.state, it.reason_code].filter(Boolean).join(': ').replaceAll('_', ' '))), it.runs > 1 && ` (${it.runs} runs)`),
    h('span', { class: 'facts' }, it.at && time(it.at), it.took_ms !== null && `took ${span(it.took_ms)}`, it.wake_at && ['goes on at ', time(it.wake_at)]),
    it.note && h('span', { class: 'says' }, plain(it.note)));
}
