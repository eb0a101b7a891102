// What a run asks, and a person's answer to exactly that: each answer names the question's number, and counts once.

import { newId, post } from './api.js';
import { fill, h, plain } from './dom.js';
import { since } from './format.js';
import { state } from './live.js';

/** @import { View } from '../types/page.d.ts' */

/**
 * The card of a question. `again(why)` is called when what it shows is no longer so; `before` is what was said then.
 * @param {View} view
 * @param {(why: string) => unknown} again
 * @param {string} [before]
 */
export function asks(view, again, before) {
  const { run, wants } = view;
  if (!wants) return run.health_why ? h('p', {}, plain(run.health_why)) : null;
  const question = run.blocked?.question ?? run.asks?.text ?? run.reason ?? '';
  const said = h('p', { class: before ? 'said problem' : 'said', role: 'status' }, before);
  const box = h('div', { class: 'asks' },
    h('h3', {}, wants === 'look' ? 'Why it does not go on' : 'It asks'),
    run.asks?.tool && h('p', {}, 'It wants to use ', h('code', {}, plain(run.asks.tool))),
    h('blockquote', {}, plain(question)));
  if (wants === 'look') box.append(look(view, said, again));
  else box.append(answers(view, question, said, again));
  box.append(said);
  return box;
}

/** @param {View} view */
function answers({ run, wants }, question, said, again) {
  const seq = run.asks?.seq;
  const box = h('div', { class: 'answers' });
  const ids = new Map();
  const give = (answer) => order(`/api/runs/${encodeURIComponent(run.id)}/answer`, { id: once(ids, answer), seq, answer }, box, said, again);
  if (wants === 'answer' || wants === 'either') {
    const field = h('textarea', { rows: '2', 'aria-label': 'Your answer', placeholder: 'Your answer' });
    const send = () => { if (field.value.trim()) give({ text: field.value }); else field.focus(); };
    box.append(h('div', { class: 'reply' }, field, h('button', { class: 'primary', onclick: send }, 'Send')));
  }
  if (wants === 'decision' || wants === 'either') {
    const sure = h('div', { class: 'sure', hidden: true });
    const ask = (verb, answer) => () => {
      sure.hidden = false;
      fill(sure, h('p', {}, `${verb}: `, h('q', {}, plain(question)), ' ', since(run.blocked?.since, 'asked ', ' ago')),
        h('button', { class: answer === 'deny' ? 'danger' : 'primary', onclick: () => give(answer) }, `${verb} this`),
        h('button', { onclick: () => { sure.hidden = true; } }, 'Not yet'));
      sure.querySelector('button')?.focus();
    };
    box.append(h('div', { class: 'buttons apart' }, h('button', { class: 'danger', onclick: ask('Deny', 'deny') }, 'Deny'),
      h('button', { class: 'primary', onclick: ask('Approve', 'approve') }, 'Approve')), sure);
  }
  return box;
}

/** Nothing to answer: a person puts it right, and lets the run go on. @param {View} view */
function look({ run }, said, again) {
  const id = newId();
  const box = h('div', { class: 'answers' });
  const resume = () => order(`/api/runs/${encodeURIComponent(run.id)}/resume`, { id, seq: run.seq }, box, said, again);
  box.append(h('div', { class: 'buttons' }, h('button', { class: 'primary', onclick: resume }, 'Resume')));
  return box;
}

/** The same answer has the same id, however often it is pressed. */
function once(ids, answer) {
  const key = JSON.stringify(answer);
  if (!ids.has(key)) ids.set(key, newId());
  return ids.get(key);
}

/** Gives an order; the buttons rest until the journal shows what came of it, or the order is refused. */
export async function order(path, body, box, said, again) {
  if (state.status === 'gone') {
    said.className = 'said problem';
    said.textContent = 'The daemon does not answer, so nothing was sent.';
    return false;
  }
  const buttons = [...box.querySelectorAll('button')];
  for (const button of buttons) button.disabled = true;
  said.className = 'said';
  said.textContent = 'Sent; waiting for the journal\u2026';
  try {
    await post(path, body);
    said.textContent = 'Taken.';
    return true;
  } catch (error) {
    said.className = 'said problem';
    fill(said, plain(error.message), error.hint ? ` (${plain(error.hint)})` : '');
    for (const button of buttons) button.disabled = false;
    // What is on the screen was not what the run asks now.
    if (error.status === 409) await again(said.textContent);
    return false;
  }
}
