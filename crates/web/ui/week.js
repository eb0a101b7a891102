// Seven days: three that passed, today, three that come. A table where there is room, a list of days on a phone.

import { fill, h, plain } from './dom.js';
import { since, span, time } from './format.js';

/** @import { Week, WeekTrigger } from '../types/page.d.ts' */

const BACK = 3;
const DAYS = 7;
const DAY = 86400000;
/** Of one trigger on one day; more of them become a line that counts them. */
const MOST_OF_DAY = 6;
const NARROW = matchMedia('(max-width: 719px)');

/** Draws the answer of `/api/week`, anew when the window becomes wide or narrow. The answer ends that. */
export function week(box) {
  /** @type {Week | null} */
  let told = null;
  const draw = () => { if (told) paint(box, told); };
  NARROW.addEventListener('change', draw);
  return { show: (answer) => { told = answer; draw(); }, close: () => NARROW.removeEventListener('change', draw) };
}

/** @param {HTMLElement} box @param {Week} told */
function paint(box, told) {
  const days = daysAround(told.now);
  /** @type {Map<string, { clock: string, element: HTMLElement }[]>} */
  const cells = new Map(days.map((day) => [day.key, []]));
  for (const trigger of told.triggers) {
    for (const [key, list] of byDay(trigger, told.now)) cells.get(key)?.push(...folded(trigger, list));
  }
  for (const list of cells.values()) list.sort((a, b) => (a.clock < b.clock ? -1 : 1));
  const isEmpty = [...cells.values()].every((list) => list.length === 0);
  const listOf = (day) => (cells.get(day.key)?.length ? h('ul', { class: 'cells-of-day' }, cells.get(day.key)?.map((it) => h('li', {}, it.element))) : h('p', { class: 'dim' }, day.isPast ? 'nothing' : 'nothing is due'));
  const name = (day) => [day.words, day.isToday && ' (today)'];
  fill(box, h('h2', { id: 'week' }, 'Week'), zones(told.triggers),
    isEmpty && h('p', {}, 'Nothing was made in these days, and no time is due in them.'),
    NARROW.matches
      ? h('ol', { class: 'days', 'aria-labelledby': 'week' }, days.map((day) => h('li', {}, h('h3', { class: day.isToday ? 'today' : '' }, name(day)), marks(day, told.triggers), listOf(day))))
      : h('table', { class: 'week' }, h('caption', { class: 'hidden' }, 'What each trigger made and when it comes, by day'),
        h('thead', {}, h('tr', {}, days.map((day) => h('th', { scope: 'col', class: day.isToday ? 'today' : '' }, name(day))))),
        h('tbody', {}, h('tr', {}, days.map((day) => h('td', {}, marks(day, told.triggers), listOf(day)))))),
    told.unknown_before && h('p', { class: 'truth' }, 'Which times were missed before ', time(told.unknown_before), ' is not known.'),
    told.triggers.map((it) => it.problem && h('p', { class: 'truth' }, `When ${plain(it.name)} comes is not known: ${plain(it.problem.message)}`)),
    told.triggers.filter((it) => it.more_runs && dateIn(it.runs[it.runs.length - 1].run.created_at, zoneOf(it)) >= days[0].key).map((it) => h('p', { class: 'dim' }, `Of ${plain(it.name)} only the newest ${it.runs.length} runs are here.`)),
    told.triggers.filter((it) => it.more_next && !it.paused && dateIn(it.next[it.next.length - 1].at, zoneOf(it)) <= days[DAYS - 1].key).map((it) => h('p', { class: 'dim' }, `Of ${plain(it.name)} only the next ${it.next.length} times are here.`)),
    told.more_triggers > 0 && h('p', { class: 'dim' }, `${told.more_triggers} more triggers are not in the week.`));
}

/** The seven days in the reader's zone, by their date. */
function daysAround(now) {
  const today = dateIn(now, undefined);
  const noon = Date.parse(`${today}T12:00:00Z`);
  return Array.from({ length: DAYS }, (_, at) => {
    const date = new Date(noon + (at - BACK) * DAY);
    const key = date.toISOString().slice(0, 10);
    return { key, isToday: key === today, isPast: key < today, words: date.toLocaleDateString([], { weekday: 'short', day: 'numeric', month: 'short', timeZone: 'UTC' }) };
  });
}

/** The day and the clock of a moment as a zone has them. */
function partsIn(at, zone) {
  const format = new Intl.DateTimeFormat('en-CA', { timeZone: zone, year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
  return Object.fromEntries(format.formatToParts(new Date(at)).map((it) => [it.type, it.value]));
}

function dateIn(at, zone) {
  const { year, month, day } = partsIn(at, zone);
  return `${year}-${month}-${day}`;
}

function clockIn(at, zone) {
  const { hour, minute } = partsIn(at, zone);
  return `${hour}:${minute}`;
}

/** The zone that a trigger's times are written in: its own, or the reader's. @param {WeekTrigger} trigger */
function zoneOf(trigger) {
  return trigger.tz ?? undefined;
}

/** What a trigger has on each day, in its own zone. @param {WeekTrigger} trigger @param {string} now */
function byDay(trigger, now) {
  const zone = zoneOf(trigger);
  const days = new Map();
  const put = (at, it) => {
    const key = dateIn(at, zone);
    if (!days.has(key)) days.set(key, []);
    days.get(key).push({ at, clock: clockIn(at, zone), ...it });
  };
  for (const { run, told, truths } of trigger.runs) put(run.created_at, { kind: 'run', run, told, truths });
  for (const it of trigger.missed) if (it.skipped > 0) put(it.due_at, { kind: 'missed', missed: it });
  if (!trigger.paused) for (const { at } of trigger.next) if (Date.parse(at) > Date.parse(now)) put(at, { kind: 'due' });
  return days;
}

/** One line for each, or one line that counts them if there are many. @param {WeekTrigger} trigger */
function folded(trigger, list) {
  if (list.length <= MOST_OF_DAY) return list.map((it) => ({ clock: it.clock, element: entry(trigger, it) }));
  const missed = list.filter((it) => it.kind === 'missed');
  const rest = list.filter((it) => it.kind !== 'missed').sort((a, b) => (a.clock < b.clock ? -1 : 1));
  const counts = new Map();
  for (const it of rest) {
    const words = it.kind === 'due' ? 'due' : it.told.words;
    counts.set(words, (counts.get(words) ?? 0) + 1);
  }
  const said = [...counts].map(([words, many]) => `${many} ${plain(words)}`).join(', ');
  const line = h('span', {}, `${rest[0]?.clock}\u2013${rest[rest.length - 1]?.clock} `, h('strong', {}, plain(trigger.name)), ` ${said}`);
  return [...missed.map((it) => ({ clock: it.clock, element: entry(trigger, it) })), ...(rest.length > 0 ? [{ clock: rest[0].clock, element: line }] : [])];
}

function entry(trigger, it) {
  const head = [h('time', { datetime: it.at, title: it.at }, it.clock), ' ', h('strong', {}, plain(trigger.name)), ' '];
  if (it.kind === 'due') return h('span', {}, head, '\u25cb due ', since(it.at, 'in '));
  if (it.kind === 'missed') {
    const { skipped } = it.missed;
    return h('span', { class: 'truth' }, head, skipped === 1 ? '\u26a0 missed: no run was made' : `\u26a0 missed ${skipped} times up to here: no runs were made`);
  }
  return h('span', {}, head, h('a', { href: `/runs/${it.run.id}` }, plain(it.told.words)), it.run.worked_ms > 0 && ` ${span(it.run.worked_ms)}`,
    it.truths.length > 0 && h('span', { class: 'truth' }, it.truths.flat().filter((part) => typeof part === 'string').join('')));
}

/** Zones that are not the reader's. @param {WeekTrigger[]} triggers */
function zones(triggers) {
  const { timeZone: here } = Intl.DateTimeFormat().resolvedOptions();
  const by = new Map();
  // UTC has several names.
  const isOther = (zone) => Intl.DateTimeFormat([], { timeZone: zone }).resolvedOptions().timeZone !== here && !(here === 'UTC' && zone === 'Etc/UTC');
  for (const it of triggers) if (it.tz && isOther(it.tz)) by.set(it.tz, [...(by.get(it.tz) ?? []), plain(it.name)]);
  if (by.size === 0) return h('p', { class: 'dim' }, `Times are in ${plain(here)}.`);
  return h('p', { class: 'dim' }, 'Each time is in the zone of its schedule: ', [...by].map(([zone, names]) => `${plain(zone)} for ${names.join(', ')}`).join('; '), `; all else in ${plain(here)}.`);
}

/** A day on which a clock is set, for a zone that a schedule has. */
function marks(day, triggers) {
  return [...new Set(triggers.map((it) => it.tz).filter(Boolean))].map((zone) => {
    const noon = Date.parse(`${day.key}T12:00:00Z`);
    const local = noon - offset(noon, zone) * 60000;
    const by = offset(local, zone) - offset(local - DAY, zone);
    return by !== 0 && h('p', { class: 'truth' }, `clock ${by > 0 ? '+' : '\u2212'}${Math.abs(by)} min in ${plain(zone)}`);
  });
}

/** Minutes by which a zone is ahead of UTC. */
function offset(at, zone) {
  const { year, month, day, hour, minute } = partsIn(at, zone);
  return Math.round((Date.parse(`${year}-${month}-${day}T${hour}:${minute}:00Z`) - at) / 60000);
}
