// One run: how it stands, what it asks, what it has used, its turns, its events and its output.

import { get, newId } from './api.js';
import { asks, order } from './asks.js';
import { fill, find, h, order as arrange, plain, problem } from './dom.js';
import { money, sentence, since, spend, time, truths } from './format.js';
import { gaugesOf } from './gauges.js';
import { keys } from './keys.js';
import { eventsOf, follow, listen } from './live.js';
import { output, placeOf } from './output.js';
import { name } from './runs.js';
import { timeline } from './timeline.js';
import { turnPart } from './turns.js';

/** @import { Event, RunPath, RunTree, RunView, Sentence, TurnRow, View } from '../types/page.d.ts' */

const EVENTS = 500;
const MOST_EVENTS = 2000;
const AGAIN = 300;
const TURNS = 100;

export function run(main, id) {
  /** @type {RunPath} */
  const path = `/api/runs/${encodeURIComponent(id)}`;
  const head = h('div', {});
  const truth = h('div', { class: 'truths' });
  const question = h('div', {});
  const gauges = h('div', { class: 'gauges' });
  const actions = h('div', {});
  const out = output(path);
  const line = h('section', { 'aria-label': 'Timeline' });
  const turns = h('div', {});
  const turnsEnd = h('div', {});
  const parts = new Map();
  const changes = h('div', {});
  const family = h('div', {});
  const events = h('div', {});
  /** @type {{ list: Event[], turns: TurnRow[], truths: Map<string, Sentence[]>, oldest: boolean, seq?: number, began?: boolean, first: number }} */
  const story = { list: [], turns: [], truths: new Map(), oldest: false, first: 0 };
  /** @type {[string, string, HTMLElement][]} */
  const tabs = [['output', 'Output', out.element], ['turns', 'Turns', turns], ['diff', 'Diff', changes], ['tree', 'Tree', family], ['events', 'Events', events]];
  const bar = h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Parts of the run', onkeydown: arrows });
  let again = null;
  let asked = null;
  let refused;
  let acting = null;
  let soon = null;
  let later = null;
  let closed = false;

  for (const [key, words, panel] of tabs) {
    bar.append(h('button', { role: 'tab', id: `tab-${key}`, 'aria-controls': `panel-${key}`, onclick: () => choose(key) }, words));
    panel.id = `panel-${key}`;
    panel.setAttribute('role', 'tabpanel');
    panel.setAttribute('aria-labelledby', `tab-${key}`);
  }
  fill(main, h('p', {}, h('a', { href: '/runs' }, '\u2039 runs')), head, truth, question, gauges, actions, line, bar, tabs.map((it) => it[2]));
  choose('output');

  function choose(key) {
    for (const [one, , panel] of tabs) {
      const tab = find(bar, `#tab-${one}`);
      panel.hidden = one !== key;
      if (!tab) continue;
      tab.setAttribute('aria-selected', String(one === key));
      tab.tabIndex = one === key ? 0 : -1;
    }
    if (key === 'diff' && !changes.firstChild) showDiff('');
    if (key === 'tree') showTree();
  }

  function arrows(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    const at = tabs.findIndex(([key]) => bar.querySelector(`#tab-${key}`) === document.activeElement);
    const [key] = tabs[(at + by + tabs.length) % tabs.length];
    choose(key);
    find(bar, `#tab-${key}`)?.focus();
    event.preventDefault();
  }

  /** What a part of the page leads to in another. */
  const show = {
    output: (turn, attempt, at) => {
      choose('output');
      if (at) out.instant(turn, attempt, at);
      else out.jump({ turn, attempt, offset: 0 });
      bar.scrollIntoView({ block: 'nearest' });
    },
    diff: (turn) => {
      showDiff(String(turn));
      choose('diff');
    },
  };

  async function showDiff(chosen) {
    const field = h('select', { id: 'diff-of', onchange: () => showDiff(field.value) }, h('option', { value: '' }, 'all that it has done'),
      story.turns.map((it) => it.changed && h('option', { value: String(it.turn), selected: String(it.turn) === chosen }, `turn ${it.turn} (+${it.changed.added} \u2212${it.changed.deleted})`)));
    field.value = chosen;
    const body = h('div', {});
    fill(changes, h('p', {}, h('label', { for: 'diff-of' }, 'What was changed by '), field), body);
    const { diff } = await import('./diff.js');
    if (!closed) diff(body, path, chosen);
  }

  async function showTree() {
    try {
      const root = await get(`${path}/tree`);
      if (closed) return;
      /** @type {RunTree[]} */
      const all = [];
      const childrenOf = (/** @type {RunTree} */ it) => it.children ?? [];
      const walk = (/** @type {RunTree} */ it) => { all.push(it); childrenOf(it).forEach(walk); };
      walk(root);
      const sum = all.reduce((total, it) => total + (it.cost_usd ?? 0), 0);
      const item = (/** @type {RunTree} */ it) => h('li', {}, h('a', { href: `/runs/${it.id}` }, name(it)), ' ', h('span', { class: 'state' }, plain([it.state, it.reason_code].filter(Boolean).join(': ')).replaceAll('_', ' ')), ' ', h('span', { class: 'dim' }, spend(it)),
        childrenOf(it).length > 0 && h('ul', {}, childrenOf(it).map(item)));
      fill(family, childrenOf(root).length === 0 ? h('p', {}, 'It has started no other runs.') : [h('p', {}, `${all.length} runs, together ${money(sum)}${all.some((it) => it.known === false) ? ' at most; not all was reported' : ''}.`), h('ul', { class: 'family' }, item(root))]);
    } catch (error) {
      fill(family, problem(error));
    }
  }

  /** The list of turns is the daemon's: one answer, however long the journal is. */
  async function loadTurns() {
    again = null;
    try {
      const found = await get(`${path}/turns?limit=${TURNS}`);
      if (closed) return;
      const older = story.turns.filter((it) => found.length > 0 && it.turn < found[found.length - 1].turn);
      story.turns = [...found, ...older];
      story.oldest = found.length < TURNS;
      out.measured(story.turns.flatMap((turn) => turn.attempts.map((it) => [turn.turn, it.attempt, it.output_bytes])));
      timeline(line, story.turns, show.output);
      soon ??= requestAnimationFrame(tell);
    } catch (error) {
      if (!closed && error.status !== 503 && error.status !== 0) fill(turns, problem(error));
    }
  }

  async function load() {
    later = null;
    try {
      const view = await get(path);
      if (!closed) draw(view);
    } catch (error) {
      if (!closed && error.status !== 503 && error.status !== 0) fill(head, h('h1', {}, plain(id)), h('p', { class: 'problem', role: 'alert' }, plain(error.message)));
      else if (!closed) later = setTimeout(load, 2000);
    }
  }

  /** @param {View} view */
  function draw(view) {
    const it = view.run;
    fill(head, h('h1', {}, name(it), ' ', h('code', { class: 'dim' }, it.id)),
      h('p', {}, h('span', { class: `state ${view.told.group}` }, plain(view.told.words)), ' ', since(it.ended_at ?? it.health_since ?? it.started_at ?? it.created_at, '', it.ended_at ? ' ago' : ''),
        it.phase && !it.ended_at && ` \u00b7 ${plain(it.phase)}`, it.wake_at && !it.ended_at && new Date(it.wake_at) > new Date() && [' \u00b7 ', since(it.wake_at, 'goes on or is due in ')]),
      it.reason && !view.wants && h('p', {}, plain(it.reason)), it.waiting && h('p', {}, plain(it.waiting.reason)),
      it.tty && !it.ended_at && h('p', {}, h('a', { class: 'terminal', href: `${location.origin}/runs/${it.id}/term` }, 'Terminal')),
      it.task && h('details', {}, h('summary', {}, 'Task'), h('pre', {}, plain(it.task))),
      it.summary && h('details', {}, h('summary', {}, 'What it said last'), h('pre', {}, plain(it.summary))));
    fill(truth, truths(view.truths));
    const key = `${it.asks?.seq}.${view.wants}`;
    if (asked !== key) {
      asked = key;
      fill(question, view.wants ? h('section', { class: 'card', 'data-run': it.id }, asks(view, (why) => { asked = null; refused = why; return load(); }, refused)) : []);
      refused = undefined;
    }
    fill(gauges, gaugesOf(it));
    const what = `${view.told.group}.${it.paused}.${Boolean(it.ended_at)}.${it.survivors.length}.${it.more_room}.${JSON.stringify(Object.entries(it.limits).map(([key, limit]) => [key, limit.max]))}`;
    if (acting !== what) {
      acting = what;
      fill(actions, steer(it));
    }
    story.seq = it.seq;
    out.attempt(it.turn, it.attempt);
    out.ended(Boolean(it.ended_at));
    if (!story.began) {
      story.began = true;
      story.first = Math.max(0, it.seq - EVENTS);
      follow(id, story.first);
    }
  }

  /** What a person may tell it to do. Orders name the last event that the page has shown. @param {RunView} it */
  function steer(it) {
    const said = h('p', { class: 'said', role: 'status' });
    const box = h('div', { class: 'answers' });
    const give = (verb, body) => order(`${path}/${verb}`, body, box, said, () => load());
    const buttons = h('div', { class: 'buttons' });
    if (!it.ended_at) {
      const ids = { pause: newId(), resume: newId() };
      if (it.paused) buttons.append(h('button', { id: 'resume', onclick: () => give('resume', { id: ids.resume, seq: story.seq }) }, 'Resume'));
      else buttons.append(h('button', { id: 'pause', onclick: () => give('pause', { id: ids.pause, seq: story.seq }) }, 'Pause'));
      box.append(message(give));
    }
    if (!it.ended_at || it.more_room) box.append(raise(it, give));
    if (!it.ended_at || it.survivors.length > 0) {
      const sure = h('div', { class: 'sure', hidden: true });
      const [gently, hard] = [newId(), newId()];
      fill(sure, h('p', {}, it.ended_at ? 'Kill what it left behind?' : 'Stop this run and everything that it started?'),
        !it.ended_at && h('button', { class: 'danger', onclick: () => give('stop', { id: gently, now: false }) }, 'Stop'),
        h('button', { class: 'danger', onclick: () => give('stop', { id: hard, now: true }) }, 'Kill at once'),
        h('button', { onclick: () => { sure.hidden = true; } }, 'Not yet'));
      buttons.append(h('button', { class: 'danger', id: 'stop', onclick: () => { sure.hidden = false; sure.querySelector('button')?.focus(); } }, 'Stop\u2026'));
      box.append(buttons, sure);
    }
    box.append(said);
    return box;
  }

  /** More of a limit. The page names what the limit becomes, so a second press adds nothing. @param {RunView} it */
  function raise(it, give) {
    /** @type {[string, string, number][]} */
    const kinds = [['max_turns', 'turns', 1], ['max_cost_usd_micros', 'dollars', 1e6], ['max_tokens', 'tokens', 1], ['run_timeout_ms', 'minutes in all', 60000], ['turn_timeout_ms', 'minutes for a turn', 60000]];
    const kind = h('select', { 'aria-label': 'Limit' }, kinds.map(([key, words, unit]) => h('option', { value: key }, `${words}${it.limits[key] ? `, now ${it.limits[key].max / unit}` : ''}`)));
    const field = h('input', { type: 'number', min: '0', step: 'any', 'aria-label': 'The new limit', class: 'short' });
    const chosen = () => kinds.find((one) => one[0] === kind.value) ?? kinds[0];
    const fit = () => { const [key, , unit] = chosen(); field.value = it.limits[key] ? String(Math.ceil((it.limits[key].max / unit) * 1.5)) : ''; };
    kind.addEventListener('change', fit);
    fit();
    const send = async () => {
      const [, , unit] = chosen();
      const to = Math.round(Number(field.value) * unit);
      if (!(to > 0)) {
        field.focus();
        return;
      }
      if (await give('raise', { id: newId(), [kind.value]: { to } })) {
        acting = null;
        load();
      }
    };
    return h('details', { class: 'raise', open: Boolean(it.more_room) }, h('summary', {}, 'Raise a limit'), it.more_room && h('p', {}, 'It was exhausted, and goes on with more room.'), h('div', { class: 'bar' }, kind, field, h('button', { onclick: send }, 'Raise')));
  }

  function message(give) {
    const field = h('textarea', { rows: '1', id: 'message', 'aria-label': 'Message for its next turn', placeholder: 'Message for its next turn' });
    let id_ = newId();
    const send = async () => {
      if (!field.value.trim()) {
        field.focus();
        return;
      }
      if (await give('messages', { id: id_, text: field.value })) {
        field.value = '';
        id_ = newId();
        acting = null;
        load();
      }
    };
    return h('div', { class: 'reply' }, field, h('button', { onclick: send }, 'Send'));
  }

  function took(news) {
    if (news.row?.id === id || news.all) later ??= setTimeout(load, AGAIN);
    if (news.all && story.began) again ??= setTimeout(loadTurns, AGAIN);
    if (!news.event) return;
    keep(news.event);
    story.list.push(news.event);
    while (story.list.length > MOST_EVENTS) story.list.shift();
    soon ??= requestAnimationFrame(tell);
  }

  /** Sentences of an attempt, and when the list of turns is to be asked for anew. @param {Event} told */
  function keep(told) {
    const { event, truth: sure } = told;
    if (!event.turn) return;
    if (event.kind === 'AttemptStarted') out.attempt(event.turn, event.attempt);
    if (sure && event.attempt) {
      const key = `${event.turn}.${event.attempt}`;
      story.truths.set(key, [...(story.truths.get(key) ?? []), sure]);
    }
    again ??= setTimeout(loadTurns, AGAIN);
  }

  function tell() {
    soon = null;
    arrange(turns, [...story.turns.map(partOf), turnsEnd]);
    fill(turnsEnd, story.turns.length === 0 && h('p', {}, 'No turn has begun.'),
      story.turns.length > 0 && !story.oldest && h('button', { onclick: moreTurns }, 'Earlier turns'));
    fill(events, h('div', { class: 'bar' }, story.first > 0 && h('button', { onclick: more }, 'Earlier events')), h('ol', { class: 'events' }, story.list.map(eventOf)));
  }

  /** @param {TurnRow} turn */
  function partOf(turn) {
    if (!parts.has(turn.turn)) parts.set(turn.turn, turnPart(turn.turn, path, show));
    const part = parts.get(turn.turn);
    part.draw(turn, story.truths);
    return part.element;
  }

  async function moreTurns() {
    const found = await get(`${path}/turns?limit=${TURNS}&before=${story.turns[story.turns.length - 1].turn}`);
    story.turns = [...story.turns, ...found];
    story.oldest = found.length < TURNS;
    tell();
  }

  async function more() {
    const after = Math.max(0, story.first - EVENTS);
    const found = await eventsOf(id, after, story.first - after);
    story.first = after;
    story.list = [...found, ...story.list];
    story.truths = new Map();
    story.list.forEach(keep);
    tell();
  }

  /** `#at=t1.a1:65536`, `#turns` or what a key of the list has led to. */
  async function aim() {
    const to = location.hash.slice(1);
    const at = placeOf(to.replace(/^at=/, ''));
    if (at) {
      choose('output');
      out.jump(at);
    } else if (tabs.some(([key]) => key === to)) {
      choose(to);
      // Before the timeline is there, the page is too short to go down to its tabs.
      drawn.then(() => bar.scrollIntoView({ block: 'start' }));
    } else if (to === 'answer') find(question, 'textarea, button')?.focus();
    else if (['message', 'stop', 'pause'].includes(to)) find(actions, `#${to}`)?.focus();
  }

  const press = (css) => () => { find(document, css)?.click(); };
  keys({
    A: () => find(question, 'textarea, button')?.focus(), m: () => find(actions, '#message')?.focus(), s: press('#stop'), p: () => (find(actions, '#pause') ?? find(actions, '#resume'))?.click(),
    r: press('#resume'), ArrowLeft: () => out.step(-1), ArrowRight: () => out.step(1), End: () => out.toEnd(), Escape: () => history.back(),
  });
  addEventListener('hashchange', aim);
  const drawn = loadTurns();
  load().then(aim);
  tell();
  const stop = listen(took);
  return {
    close: () => {
      closed = true;
      stop();
      clearTimeout(later);
      clearTimeout(again);
      cancelAnimationFrame(soon);
      removeEventListener('hashchange', aim);
      out.close();
    },
  };
}

/** @param {Event} told */
function eventOf({ event, says, truth }) {
  const rest = Object.fromEntries(Object.entries(event).filter(([key]) => !['seq', 'at', 'run', 'kind'].includes(key)));
  return h('li', { value: event.seq, 'data-seq': event.seq }, time(event.at), ' ', h('code', {}, event.kind), ' ',
    says.map((line) => h('span', { class: 'says' }, plain(line))), truth && h('span', { class: 'truth' }, sentence(truth)),
    h('details', {}, h('summary', {}, 'fields'), h('pre', {}, plain(JSON.stringify(rest, null, 1)))));
}
