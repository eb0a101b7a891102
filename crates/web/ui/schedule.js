// Triggers: what each made by day, what comes next, what was missed.

import { get, newId, post } from './api.js';
import { fill, h, plain, problem } from './dom.js';
import { clock, since, span, time } from './format.js';
import { listen, state } from './live.js';
import { week } from './week.js';

/** @import { TriggerPath, TriggerView } from '../types/page.d.ts' */

const DAYS = 7;

export function page(main) {
  const around = h('section', {});
  const body = h('div', {});
  const gone = new AbortController();
  const openOnes = new Set();
  const days = week(around);
  fill(main, h('h1', {}, 'Schedule'), around, body);

  async function load() {
    try {
      const list = await get('/api/triggers', gone.signal);
      draw(list);
      if (list.length > 0) days.show(await get('/api/week', gone.signal));
      else fill(around);
    } catch (error) {
      if (!gone.signal.aborted) fill(body, problem(error));
    }
  }

  /** @param {TriggerView[]} list */
  function draw(list) {
    if (list.length === 0) {
      fill(body, h('p', {}, 'Nothing starts runs by itself yet. A schedule: ', h('code', {}, "outlast schedule add nightly --cron '0 3 * * *' -f WORKFLOW.md")));
      return;
    }
    const coming = list.flatMap((it) => (it.next_at && !it.paused ? [{ name: it.name, at: it.next_at }] : [])).sort((a, b) => (a.at < b.at ? -1 : 1));
    fill(body, coming.length > 0 && h('section', {}, h('h2', {}, 'Next'), h('ol', { class: 'next' }, coming.slice(0, 10).map((it) => h('li', {}, time(it.at), ' ', h('strong', {}, plain(it.name)), ' ', since(it.at, 'in '))))),
      h('h2', {}, 'Triggers'), list.map((it) => card(it, load, openOnes)));
  }

  load();
  // A run that begins or ends changes what the triggers say.
  let soon = null;
  const stop = listen((news) => { if (news.all || news.row?.trigger) soon ??= setTimeout(() => { soon = null; load(); }, 2000); });
  return { close: () => { gone.abort(); stop(); days.close(); clearTimeout(soon); } };
}

/** @param {TriggerView} it @param {() => void} again @param {Set<string>} openOnes */
function card(it, again, openOnes) {
  const said = h('p', { class: 'said', role: 'status' });
  const box = h('div', { class: 'buttons' });
  /** @type {TriggerPath} */
  const path = `/api/triggers/${encodeURIComponent(it.name)}`;
  const ids = { run: newId(), pause: newId(), resume: newId() };
  const give = async (verb, body) => {
    for (const button of box.querySelectorAll('button')) button.disabled = true;
    try {
      if (verb === 'run') {
        const done = await post(`${path}/run`, body);
        fill(said, 'Started ', h('a', { href: `/runs/${done.run}` }, plain(done.name ?? done.run)), done.existed ? ' (before)' : '');
      } else {
        await post(`${path}/${verb}`, body);
        again();
      }
    } catch (error) {
      fill(said, problem(error));
    }
    for (const button of box.querySelectorAll('button')) button.disabled = false;
  };
  box.append(h('button', { onclick: () => give('run', { occurrence: `web-${ids.run}`, trigger_id: it.id, item: {} }) }, 'Run now'),
    it.paused ? h('button', { onclick: () => give('resume', { id: ids.resume, trigger_id: it.id }) }, 'Resume') : h('button', { onclick: () => give('pause', { id: ids.pause, trigger_id: it.id }) }, 'Pause'));
  const past = h('div', {});
  const fold = h('details', { open: openOnes.has(it.name), ontoggle: () => {
    if (fold.open) {
      openOnes.add(it.name);
      if (!past.firstChild) made(past, path);
    } else openOnes.delete(it.name);
  } }, h('summary', {}, 'What it has made'), past);
  return h('section', { class: 'card' }, h('h3', {}, plain(it.name), ' ', h('span', { class: 'dim' }, plain(it.kind))),
    h('p', {}, h('code', {}, plain(it.source)), it.paused && ' (paused)', it.next_at && !it.paused && [' \u00b7 next ', time(it.next_at), ' ', since(it.next_at, '(in ', ')')]),
    h('p', { class: 'dim' }, plain(it.what)),
    h('p', {}, it.last_run ? ['last: ', h('a', { href: `/runs/${it.last_run}` }, lastState(it.last_run)), ' ', it.last_at && time(it.last_at), ' \u00b7 '] : 'no run yet \u00b7 ', `${it.runs} ${it.runs === 1 ? 'run' : 'runs'}, ${it.open} open, ${it.waiting} waiting, ${it.skipped} skipped, ${it.refused} refused${it.filtered > 0 ? `, ${it.filtered} filtered` : ''}`),
    [it.trouble, it.refusal].map((trouble) => trouble && h('p', { class: 'truth' }, plain(trouble.message), ' (since ', time(trouble.since), ')')), box, said, fold);
}

/** @param {string} id */
function lastState(id) {
  const row = state.rows.get(id);
  return plain(row?.told.words ?? id.slice(0, 6));
}

/** The runs of the last days, the newest day first. @param {HTMLElement} box @param {TriggerPath} path */
async function made(box, path) {
  fill(box, h('p', { class: 'dim' }, 'Asking\u2026'));
  try {
    const rows = await get(`${path}/runs`);
    const days = new Map();
    for (const row of rows) {
      const day = new Date(row.created_at).toLocaleDateString([], { weekday: 'short', year: 'numeric', month: 'short', day: 'numeric' });
      if (!days.has(day)) days.set(day, []);
      days.get(day).push(row);
    }
    fill(box, rows.length === 0 && h('p', {}, 'Nothing yet.'), [...days].slice(0, DAYS).map(([day, list]) => h('div', {}, h('h4', {}, day),
      h('ul', { class: 'cells' }, list.map((row) => h('li', {}, h('a', { href: `/runs/${row.id}` }, `${clock(row.created_at).slice(-8)} ${plain([row.state, row.reason_code].filter(Boolean).join(': ')).replaceAll('_', ' ')}`), row.worked_ms > 0 && ` ${span(row.worked_ms)}`))))));
  } catch (error) {
    fill(box, problem(error));
  }
}
