// Figures and times for people.

import { h } from './dom.js';

/** @import { RunRow, Sentence } from '../types/page.d.ts' */

export function money(usd) {
  if (usd >= 0.01 || usd === 0) return `$${usd.toFixed(2)}`;
  return `$${usd.toFixed(4)}`;
}

export function count(number) {
  if (number < 10000) return String(number);
  if (number < 1e6) return `${Math.round(number / 1e3)}k`;
  return `${(number / 1e6).toFixed(1)}M`;
}

export function bytes(number) {
  if (number < 1024) return `${number} B`;
  if (number < 1024 ** 2) return `${(number / 1024).toFixed(1)} KiB`;
  if (number < 1024 ** 3) return `${(number / 1024 ** 2).toFixed(1)} MiB`;
  return `${(number / 1024 ** 3).toFixed(1)} GiB`;
}

/** A length of time in its two largest units. */
export function span(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  /** @type {[number, string][]} */
  const parts = [[86400, 'd'], [3600, 'h'], [60, 'm'], [1, 's']];
  const first = parts.findIndex(([unit]) => seconds >= unit);
  if (first < 0) return '0s';
  const told = [];
  let rest = seconds;
  for (const [unit, name] of parts.slice(first, first + 2)) {
    const many = Math.floor(rest / unit);
    if (many > 0) told.push(`${many}${name}`);
    rest -= many * unit;
  }
  return told.join(' ');
}

export function clock(at) {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return String(at);
  const time = date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false });
  if (date.toDateString() === new Date().toDateString()) return time;
  const day = [date.getFullYear(), date.getMonth() + 1, date.getDate()].map((it) => String(it).padStart(2, '0')).join('-');
  return `${day} ${time}`;
}

/** A time in the reader's zone, with the exact one in its title. */
export function time(at) {
  return at ? h('time', { datetime: at, title: at }, clock(at)) : 'a time that is not known';
}

/** How long ago, or until when; kept up to date by `tick`. */
export function since(at, before = '', after = '') {
  if (!at) return null;
  const element = h('time', { class: 'since', datetime: at, title: at, 'data-before': before, 'data-after': after });
  tell(element);
  return element;
}

function tell(element) {
  const ms = Date.now() - new Date(element.getAttribute('datetime')).getTime();
  const text = `${element.dataset.before}${span(Math.abs(ms))}${element.dataset.after}`;
  if (element.textContent !== text) element.textContent = text;
}

export function tick() {
  for (const element of document.querySelectorAll('time.since')) tell(element);
}

/** A sentence of truth: text and times. @param {Sentence} parts */
export function sentence(parts) {
  return parts.map((part) => (typeof part === 'string' ? part : time(part.at)));
}

/** @param {Sentence[]} list */
export function truths(list) {
  return (list ?? []).map((parts) => h('p', { class: 'truth' }, h('span', { 'aria-hidden': 'true' }, '\u26a0 '), sentence(parts)));
}

/**
 * What was spent, with what was not reported told apart.
 * @param {Pick<RunRow, 'cost_usd' | 'known'> & Partial<RunRow>} row
 */
export function spend(row) {
  const cost = row.cost_usd ?? 0;
  const held = row.unreported_usd ?? 0;
  const isOpen = held > 0 || (row.unreported_attempts ?? 0) > 0;
  if (row.known !== false || row.money_known || !isOpen) return cost > 0 ? money(cost) : (row.tokens ?? 0) > 0 ? `${count(row.tokens ?? 0)} tokens` : '';
  if (held > 0) return `${money(Math.max(0, cost - held))} + up to ${money(held)} not reported`;
  return cost > 0 ? `${money(cost)}, not all reported` : 'spend not reported';
}
