// The runs as they are now, and the events of the run that is looked at. Comes back by itself after its daemon.

import { get, open, sse } from './api.js';

/** @import { Event, Row } from '../types/page.d.ts' */

const HIDDEN_FOR = 30000;
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 15000;

/** What every page shows. */
export const state = {
  /** @type {Map<string, Row>} */
  rows: new Map(),
  /** `loading`, `live` or `gone`. */
  status: 'loading',
  /** @type {string | null} */
  goneSince: null,
  why: '',
  hint: '',
  truncated: false,
  daemon: null,
  /** How many runs of the list are in each group. */
  counts: { needs_you: 0, running: 0, waiting: 0, queued: 0, ended: 0 },
};

/** @param {Row} row */
function put(row) {
  const known = state.rows.get(row.id);
  if (known) state.counts[known.told.group] -= 1;
  state.counts[row.told.group] = (state.counts[row.told.group] ?? 0) + 1;
  state.rows.set(row.id, row);
}

function drop(id) {
  const known = state.rows.get(id);
  if (!known) return;
  state.counts[known.told.group] -= 1;
  state.rows.delete(id);
}

/** The runs before the oldest that is listed. False if there are no more. */
export async function older() {
  /** @type {Row | null} */
  let oldest = null;
  for (const row of state.rows.values()) if (row.ended_at && (!oldest || row.created_at < oldest.created_at)) oldest = row;
  const found = await get(`/api/older${oldest ? `?before=${encodeURIComponent(oldest.id)}` : ''}`);
  for (const it of found) {
    kept.add(it.run.id);
    if (!state.rows.has(it.run.id)) put({ ...it.run, told: it.told, truths: it.truths });
  }
  state.truncated = found.length > 0;
  tell({ all: true });
}

/** Older runs that a person asked for: no list that comes again has them. */
const kept = new Set();

const listeners = new Set();
let following = null;
let stopping = null;
let pause = FIRST_PAUSE;
let timer = null;
let eventsOver = false;

/**
 * Calls `take(news)` for every change; the answer ends that.
 * @param {(news: { all?: boolean, row?: Row, gone?: string, event?: Event }) => void} take
 */
export function listen(take) {
  listeners.add(take);
  return () => listeners.delete(take);
}

function tell(news) {
  for (const take of [...listeners]) take(news);
}

/** Follows the events of this run after a number too, or of none. */
export function follow(run, after) {
  const same = following?.run === run;
  following = run ? { run, after: same ? following.after : after } : null;
  if (!same) restart();
}

/** A browser allows six connections to a page, over all of its tabs: hidden ones give theirs up when another begins. */
const others = new BroadcastChannel('outlast');
others.addEventListener('message', () => { if (document.hidden && stopping) rest(); });

export function start() {
  document.addEventListener('visibilitychange', () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(rest, HIDDEN_FOR);
    else if (!stopping) {
      dispatchEvent(new Event('outlast-back'));
      restart();
    }
  });
  addEventListener('online', restart);
  // A page that the browser keeps for its back button would keep its connections, too.
  addEventListener('pagehide', rest);
  addEventListener('pageshow', (event) => {
    if (!event.persisted) return;
    dispatchEvent(new Event('outlast-back'));
    restart();
  });
  restart();
}

/** A page that is not looked at holds no connection. */
function rest() {
  stop();
  dispatchEvent(new Event('outlast-away'));
}

export function stop() {
  stopping?.abort();
  stopping = null;
}

export function restart() {
  stop();
  clearTimeout(timer);
  pause = FIRST_PAUSE;
  if (!document.hidden) others.postMessage('begins');
  run();
}

async function run() {
  const mine = new AbortController();
  stopping = mine;
  while (stopping === mine) {
    let error = { message: 'the daemon went away' };
    try {
      await once(mine);
    } catch (thrown) {
      error = thrown;
    }
    if (stopping !== mine || error.status === 401) return;
    lost(error);
    await new Promise((done) => { setTimeout(done, pause * (0.75 + Math.random() / 2)); });
    pause = Math.min(pause * 2, LONGEST_PAUSE);
  }
}

async function once(mine) {
  const query = new URLSearchParams({ ended: '200' });
  if (following) {
    query.set('run', following.run);
    query.set('after', String(following.after));
  }
  eventsOver = false;
  const reader = await open(`/api/live?${query}`, mine.signal);
  const listed = new Set();
  let why = null;
  const feed = sse((name, data) => {
    if (name === 'lost') why = data.why;
    else take(name, data, listed);
  });
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    feed(value);
  }
  throw new Error(why ?? 'the daemon went away');
}

function take(name, data, listed) {
  switch (name) {
    case 'hello':
      state.daemon = data;
      break;
    case 'row': {
      listed.add(data.run.id);
      const row = { ...data.run, told: data.told, truths: data.truths };
      put(row);
      tell({ row });
      if (eventsOver && following?.run === row.id && !row.ended_at) restart();
      break;
    }
    case 'listed':
      // What is not in the list was removed while no daemon answered.
      for (const id of [...state.rows.keys()]) if (!listed.has(id) && !kept.has(id)) drop(id);
      Object.assign(state, { status: 'live', goneSince: null, truncated: data.truncated });
      pause = FIRST_PAUSE;
      tell({ all: true });
      break;
    case 'gone':
      kept.delete(data.run);
      drop(data.run);
      tell({ gone: data.run });
      break;
    case 'event':
      // Sent again after a reconnect, an event is known by its number.
      if (following?.run === data.event.run && data.event.seq > following.after) {
        following.after = data.event.seq;
        tell({ event: data });
      }
      break;
    case 'events_end':
      eventsOver = true;
      break;
    default:
  }
}

function lost(error) {
  if (state.status !== 'gone') state.goneSince = new Date().toISOString();
  Object.assign(state, { status: 'gone', why: error.message, hint: error.hint ?? '' });
  tell({ all: true });
}

/** Events before those that are shown. */
export function eventsOf(run, after, most) {
  return get(`/api/runs/${encodeURIComponent(run)}/events?after=${after}&most=${most}`);
}
