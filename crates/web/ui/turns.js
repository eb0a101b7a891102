// Turns: what each attempt was told, what its agent did and answered, what the host checked, what it changed.

import { get } from './api.js';
import { fill, h, plain, problem } from './dom.js';
import { bytes, clock, count, money, sentence, span, time } from './format.js';

/** @import { AttemptRow, RunPath, Sentence, TurnRow } from '../types/page.d.ts' */

/**
 * The part of one turn. Its element stays while the turn goes on: a press, an open part and the focus outlive what is drawn anew.
 * `show` leads to output or a diff.
 * @param {number} number
 * @param {RunPath} path
 */
export function turnPart(number, path, show) {
  const title = h('summary', {});
  const attempts = h('div', {});
  const told = h('div', {});
  const element = h('details', { 'data-turn': number, ontoggle: (event) => { if (event.target === element && element.open && !told.firstChild) look(told, path, number); } }, title, attempts, told);
  let drawn = '';

  /**
   * `truths` has the sentences of an attempt by `turn.attempt`.
   * @param {TurnRow} turn
   * @param {Map<string, Sentence[]>} truths
   */
  function draw(turn, truths) {
    const now = JSON.stringify([turn, turn.attempts.map((it) => truths.get(`${number}.${it.attempt}`))]);
    if (now === drawn) return;
    drawn = now;
    const last = turn.attempts[turn.attempts.length - 1];
    const state = turn.status ?? last?.outcome ?? 'goes on';
    const failed = turn.errands.filter((it) => it.outcome && it.outcome !== 'exited').length;
    fill(title, h('strong', {}, `turn ${number}`), ` ${plain(state).replaceAll('_', ' ')}`, turn.summary && `: ${plain(turn.summary)}`,
      turn.changed && h('span', { class: 'dim' }, ` +${turn.changed.added} \u2212${turn.changed.deleted}`), failed > 0 && h('span', { class: 'dim' }, ` (${failed} of its commands did not exit)`));
    fill(attempts, turn.attempts.map((it) => attemptOf(turn, it, truths, show)),
      turn.changed && h('p', {}, h('button', { onclick: () => show.diff(number) }, `What turn ${number} changed (${turn.changed.files} files)`)));
    // A part that is closed is asked for when it is opened.
    if (element.open) look(told, path, number);
    else fill(told);
  }

  return { element, draw };
}

/** @param {TurnRow} turn @param {AttemptRow} it @param {Map<string, Sentence[]>} truths */
function attemptOf(turn, it, truths, show) {
  const took = it.started_at && it.ended_at ? Date.parse(it.ended_at) - Date.parse(it.started_at) : 0;
  return h('div', { class: 'attempt' },
    h('p', {}, `attempt ${it.attempt}: `, it.outcome ? plain(it.outcome).replaceAll('_', ' ') : 'goes on', exitOf(it.exit), ' ',
      it.started_at && ['from ', time(it.started_at)], it.ended_at && [' to ', time(it.ended_at)], took > 0 && `, ${span(took)}`, chargeOf(it.usage), ' ',
      it.output_bytes > 0 && h('a', { href: `${location.pathname}#at=t${turn.turn}.a${it.attempt}:0`, onclick: (event) => { event.preventDefault(); event.stopPropagation(); show.output(turn.turn, it.attempt); } }, `${bytes(it.output_bytes)} of output`),
      it.output_gap && `, ${it.output_gap.to - it.output_gap.from} bytes of it not kept`),
    (truths.get(`${turn.turn}.${it.attempt}`) ?? fallback(it)).map((parts) => h('p', { class: 'truth' }, sentence(parts))));
}

/** @param {AttemptRow['exit']} exit */
function exitOf(exit) {
  if (!exit) return '';
  return 'code' in exit ? ` (${exit.code})` : ` (signal ${exit.signal})`;
}

/** What the list itself proves, of attempts whose events are not on the page. @param {AttemptRow} it @returns {Sentence[]} */
function fallback(it) {
  /** @type {Sentence[]} */
  const list = it.adopted_at.map(() => ['The daemon was replaced here; same process, no output missing.']);
  if (it.orphaned_at) list.push(['Its shim died, as seen at ', { at: it.orphaned_at }, '. Its output and exit can no longer be seen. Stop still works.']);
  if (it.outcome === 'lost') list.push(['The end of this was not seen. Its process was gone', ...(it.ended_at ? [' at ', { at: it.ended_at }] : []), '. It may have finished; check before repeating.']);
  return list;
}

/** @param {AttemptRow['usage']} usage */
function chargeOf(usage) {
  if (!usage) return '';
  const held = usage.unreported_usd ?? 0;
  const paid = Math.max(0, usage.cost_usd - held);
  if (!usage.known && !usage.money_known) return `, ${money(paid)} reported${held > 0 ? `, up to ${money(held)} more was not` : '; not all of it was'}`;
  return paid > 0 ? `, ${money(paid)}` : usage.input_tokens + usage.output_tokens > 0 ? `, ${count(usage.input_tokens + usage.output_tokens)} tokens` : '';
}

/** What each attempt was told, and what came back. @param {HTMLElement} box @param {RunPath} path @param {number} number */
async function look(box, path, number) {
  try {
    const turn = await get(`${path}/turns/${number}`);
    const text = (value) => plain(typeof value === 'string' ? value : JSON.stringify(value, null, 2));
    const part = (title, value) => value !== null && value !== undefined && value !== '' && h('details', {}, h('summary', {}, title), h('pre', { tabindex: '0' }, text(value)));
    fill(box, turn.attempts?.map((it) => [
      it.note && h('div', { class: 'note' }, h('strong', {}, `Attempt ${it.attempt} was told why: `), h('pre', { tabindex: '0' }, text(it.note))),
      part(`What attempt ${it.attempt} was told`, it.prompt), it.agent && h('details', {}, h('summary', {}, `What its agent did in attempt ${it.attempt}`), transcript(it.agent)),
      part(`What attempt ${it.attempt} answered`, it.response)]),
    turn.tools?.refused?.map((it) => h('p', { class: 'truth' }, `The call of ${plain(it.name)} was turned down: ${plain(it.why)}`)),
    turn.errands?.map((it) => part(`${plain(it.purpose)}: ${plain(it.outcome ?? 'goes on')}${exitOf(it.exit)}`, it.output_tail || '(no output)')));
  } catch (error) {
    fill(box, problem(error));
  }
}

const SAYS = {
  said: (it) => h('blockquote', {}, plain(it.text)),
  tool_started: (it) => h('p', {}, 'uses ', h('code', {}, plain(it.name)), ' ', plain(it.about)),
  tool_ended: (it) => (it.is_error ? h('p', { class: 'truth' }, 'The tool reported an error.') : null),
  model: (it) => h('p', { class: 'dim' }, `model ${plain(it.name)}`),
  new_conversation: (it) => h('p', {}, `It began a new conversation: ${plain(it.why)}`),
  retries: (it) => h('p', {}, `tries again by itself: ${plain(it.trouble?.text)}`),
  window: (it) => h('p', {}, `its provider says: ${plain(it.trouble?.text)}`),
  asked: (it) => h('p', {}, `asks: ${plain(it.text ?? it.tool ?? '')}`),
  decided: (it) => h('p', {}, `was answered: ${plain(typeof it.decision === 'string' ? it.decision : JSON.stringify(it.decision))}`),
  not_understood: (it) => h('p', { class: 'truth' }, `${it.lines} lines of it were not understood.`),
};

function transcript(agent) {
  const started = new Map();
  const ended = new Set(agent.events.filter((it) => it.event === 'tool_ended').map((it) => it.id));
  const list = agent.events.map((it, at) => {
    if (it.event === 'tool_started') started.set(it.id, it);
    const said = SAYS[it.event]?.(it);
    const isOpen = it.event === 'tool_started' && agent.end && !ended.has(it.id);
    return [at === agent.omitted_after && h('li', { class: 'truth' }, `${agent.omitted_bytes} bytes of events are not shown here.`),
      said && h('li', {}, it.at_ms > 0 && h('time', { class: 'dim' }, clock(it.at_ms)), said, isOpen && h('p', { class: 'truth' }, 'How this call ended was not seen.'))];
  });
  return h('ol', { class: 'transcript' }, list, agent.unreadable && h('li', { class: 'truth' }, plain(agent.unreadable)),
    agent.damaged_lines > 0 && h('li', { class: 'truth' }, `${agent.damaged_lines} lines are damaged.`));
}
