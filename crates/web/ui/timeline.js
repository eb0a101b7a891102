// The attempts of a run along time: one row for each turn, long waits folded, adoptions marked. A table says the same.

import { fill, h, plain, table } from './dom.js';
import { clock, span } from './format.js';

/** @import { TurnRow } from '../types/page.d.ts' */

/** A wait longer than this, and than a tenth of the time at work, is folded to a narrow band. */
const FOLD_AFTER = 60000;
const MOST_ROWS = 40;
/** Percent of the width below which a bar has no room for its words. */
const LEGIBLE = 3;

/**
 * `look(turn, attempt, at)` is called with the moment of an attempt that was pressed.
 * @param {HTMLElement} box
 * @param {TurnRow[]} turns
 * @param {(turn: number, attempt: number, at: string) => void} look
 */
export function timeline(box, turns, look) {
  const bars = barsOf(turns.slice(0, MOST_ROWS));
  if (bars.length === 0) {
    fill(box);
    return;
  }
  const scale = scaleOf(bars);
  const rows = new Map();
  for (const bar of bars) {
    if (!rows.has(bar.turn)) rows.set(bar.turn, []);
    rows.get(bar.turn).push(bar);
  }
  const lines = [...rows].sort((a, b) => a[0] - b[0]).map(([turn, list]) => h('div', { class: 't-row' },
    h('span', { class: 't-name' }, `t${turn}`), lane(list.map((bar) => barOf(bar, scale, look)).concat(scale.folds.map((fold) => band(fold))))));
  const wasOpen = box.querySelector('details')?.open ?? false;
  fill(box, h('h2', {}, 'Timeline'), h('div', { class: 'timeline', 'aria-hidden': 'true' },
    h('div', { class: 't-row' }, h('span', { class: 't-name' }), lane([axis(bars[0].from, 0), ...scale.folds.map((fold) => foldName(fold)), axis(scale.end, 100)])), lines),
  turns.length > MOST_ROWS && h('p', { class: 'dim' }, `The newest ${MOST_ROWS} turns.`),
  h('details', { open: wasOpen }, h('summary', {}, 'As a table'), table('Attempts', ['turn', 'attempt', 'from', 'to', 'took', 'outcome', 'what else'], bars.map((bar) => [
    String(bar.turn), String(bar.attempt), clock(bar.from), bar.isOpen ? 'goes on' : clock(bar.to), span(bar.to - bar.from), bar.outcome, notes(bar).join(' ')]))));
}

/** @param {TurnRow[]} turns */
function barsOf(turns) {
  const bars = [];
  for (const turn of turns) {
    for (const it of turn.attempts) {
      if (!it.started_at) continue;
      const from = Date.parse(it.started_at);
      const isLast = turn.status && it === turn.attempts[turn.attempts.length - 1];
      const outcome = it.outcome ? plain(it.outcome).replaceAll('_', ' ') + codeOf(it.exit) : 'goes on';
      bars.push({ turn: turn.turn, attempt: it.attempt, from, to: it.ended_at ? Date.parse(it.ended_at) : Date.now(), isOpen: !it.ended_at, isGood: Boolean(isLast && turn.status !== 'failed'),
        outcome: isLast ? `${outcome}, ${plain(turn.status)}` : outcome, adopted: it.adopted_at.map((at) => Date.parse(at)), orphaned: it.orphaned_at });
    }
  }
  return bars.sort((a, b) => a.from - b.from);
}

/** What an exit says that its word does not; 0 says nothing. @param {TurnRow['attempts'][number]['exit']} exit */
function codeOf(exit) {
  if (!exit) return '';
  if ('signal' in exit) return ` by signal ${exit.signal}`;
  return exit.code === 0 ? '' : ` with ${exit.code}`;
}

/** From moments to percent: time at work in full, long waits as bands of equal width. */
function scaleOf(bars) {
  const worked = bars.reduce((sum, bar) => sum + bar.to - bar.from, 0);
  const begin = bars[0].from;
  const parts = [];
  let until = begin;
  for (const bar of bars) {
    const wait = bar.from - until;
    if (wait > FOLD_AFTER && wait > worked / 10) parts.push({ from: until, to: bar.from });
    until = Math.max(until, bar.to);
  }
  const folded = parts.reduce((sum, it) => sum + it.to - it.from, 0);
  const width = Math.min(8, 40 / Math.max(1, parts.length));
  const rest = 100 - width * parts.length;
  const shown = Math.max(1, until - begin - folded);
  const at = (moment) => {
    let [hidden, bands] = [0, 0];
    for (const part of parts) {
      if (moment >= part.to) {
        hidden += part.to - part.from;
        bands += 1;
      } else if (moment > part.from) {
        return (rest * (part.from - begin - hidden)) / shown + width * bands + (width * (moment - part.from)) / (part.to - part.from);
      }
    }
    return (rest * (moment - begin - hidden)) / shown + width * bands;
  };
  return { at, end: until, folds: parts.map((part) => ({ ...part, left: at(part.from), width })) };
}

function lane(children) {
  return h('div', { class: 't-lane' }, children);
}

function placed(element, left, width) {
  element.style.left = `${left}%`;
  if (width !== undefined) element.style.width = `${width}%`;
  return element;
}

function barOf(bar, scale, look) {
  const [left, right] = [scale.at(bar.from), scale.at(bar.to)];
  const seek = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    const share = box.width > 0 ? Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)) : 0;
    look(bar.turn, bar.attempt, new Date(bar.from + share * (bar.to - bar.from)).toISOString());
  };
  const element = h('div', { class: `t-bar ${bar.isOpen ? 'open' : bar.isGood ? 'good' : 'bad'}`, title: sentenceOf(bar), onclick: seek }, right - left > LEGIBLE && `a${bar.attempt} ${bar.outcome}`);
  return [placed(element, left, Math.max(0.5, right - left)), bar.adopted.map((at) => placed(h('span', { class: 't-mark', title: 'The daemon was replaced here; same process, no output missing.' }, '\u27f2'), scale.at(at)))];
}

function band(fold) {
  return placed(h('div', { class: 't-fold' }), fold.left, fold.width);
}

function foldName(fold) {
  return placed(h('span', { class: 't-fold-name' }, `\u2044\u2044 ${span(fold.to - fold.from)}`), fold.left, fold.width);
}

function axis(at, left) {
  const element = h('span', { class: left === 0 ? 't-axis' : 't-axis right' }, clock(at));
  return element;
}

function notes(bar) {
  return [bar.adopted.length > 0 && 'The daemon was replaced here; same process, no output missing.', bar.orphaned && 'Its shim died; its output and exit can no longer be seen.'].filter(Boolean);
}

function sentenceOf(bar) {
  return [`turn ${bar.turn}, attempt ${bar.attempt}: ${bar.outcome}, from ${clock(bar.from)}${bar.isOpen ? ' on' : ` to ${clock(bar.to)}`}.`, ...notes(bar)].join(' ');
}
