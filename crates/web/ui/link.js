// One run for the holder of a read-only link: how it stands, what it has used, its turns, and its output if the link has it.

import { borrow, get, open, sse } from './api.js';
import { fill, h, plain } from './dom.js';
import { bytes, since, span, tick, time, truths } from './format.js';
import { gaugesOf } from './gauges.js';
import { output } from './output.js';
import { timeline } from './timeline.js';

const KEY = 'outlast.link';
const SECRET = /^#([0-9a-f]{64})$/;
const AGAIN = 500;
const EVERY = 15000;
const HIDDEN_FOR = 30000;
const PAUSES = [500, 1000, 2000, 5000, 15000];

const main = h('main', { id: 'main', tabindex: '-1' });
const status = h('span', { class: 'status' });
const head = h('div', {});
const truth = h('div', { class: 'truths' });
const gauges = h('div', { class: 'gauges' });
const line = h('section', { 'aria-label': 'Timeline' });
const turns = h('section', { 'aria-label': 'Turns' });
const wrote = h('section', { 'aria-label': 'Output', hidden: true });
const out = output('/api/s');
let later = null;
let stopping = null;
let timer = null;
let seq = 0;

document.body.append(h('a', { class: 'skip', href: '#main' }, 'Skip to the content'),
  h('header', {}, h('strong', {}, 'outlast'), h('span', { class: 'dim' }, 'read only'), status), main);

function over(words) {
  stop();
  sessionStorage.removeItem(KEY);
  status.textContent = '';
  document.title = 'outlast';
  fill(main, h('section', { class: 'card' }, h('h1', {}, 'This link shows nothing'), h('p', { role: 'alert' }, plain(words)),
    h('p', {}, 'Ask the person who sent it for another.')));
}

async function load() {
  clearTimeout(later);
  later = setTimeout(load, EVERY);
  try {
    const [view, list] = await Promise.all([get('/api/s/run'), get('/api/s/turns?limit=100')]);
    draw(view, list);
    status.textContent = '\u25cf live';
    document.body.classList.remove('gone');
  } catch (error) {
    if (error.status === 401 || error.status === 404) over(error.message);
    else {
      status.textContent = '\u25cb not live';
      document.body.classList.add('gone');
    }
  }
}

function draw(view, list) {
  const it = view.run;
  seq = it.seq;
  const called = it.name ?? it.id;
  document.title = `${plain(called)} \u00b7 outlast`;
  fill(head, h('h1', {}, plain(called), ' ', h('code', { class: 'dim' }, it.id)),
    h('p', {}, h('span', { class: `state ${view.told.group}` }, plain(view.told.words)), ' ',
      since(it.ended_at ?? it.health_since ?? it.started_at ?? it.created_at, '', it.ended_at ? ' ago' : ''), it.phase && ` \u00b7 ${plain(it.phase)}`),
    it.is_asked && h('p', {}, 'It waits for a person.'),
    h('p', { class: 'dim' }, `This link shows one run, for another ${span(view.link.left_s * 1000)}. Nothing can be changed with it.`));
  fill(truth, truths(view.truths));
  fill(gauges, gaugesOf(it));
  timeline(line, list, (turn, attempt, at) => { if (view.link.output) out.instant(turn, attempt, at); });
  fill(turns, h('h2', {}, 'Turns'), list.length === 0 ? h('p', {}, 'No turn has begun.') : h('ol', { class: 'events' }, list.map(turnOf)));
  wrote.hidden = !view.link.output;
  if (!view.link.output) return;
  out.measured(list.flatMap((turn) => turn.attempts.map((one) => [turn.turn, one.attempt, one.output_bytes])));
  out.ended(Boolean(it.ended_at));
}

function turnOf(turn) {
  const last = turn.attempts[turn.attempts.length - 1];
  const written = turn.attempts.reduce((sum, it) => sum + it.output_bytes, 0);
  return h('li', { value: turn.turn }, `turn ${turn.turn} ${plain(turn.status ?? last?.outcome ?? 'goes on').replaceAll('_', ' ')}`,
    turn.changed && h('span', { class: 'dim' }, ` +${turn.changed.added} \u2212${turn.changed.deleted}`), turn.committed_at && [' at ', time(turn.committed_at)], written > 0 && `, ${bytes(written)} of output`);
}

/** Hears of each change, and asks for the run anew. */
async function follow() {
  const mine = new AbortController();
  stopping = mine;
  for (let tries = 0; stopping === mine; tries += 1) {
    try {
      const reader = await open(`/api/s/live?after=${seq}`, mine.signal);
      const feed = sse(() => {
        tries = 0;
        clearTimeout(later);
        later = setTimeout(load, AGAIN);
      });
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        feed(value);
      }
    } catch (error) {
      if (stopping !== mine) return;
      if (error.status === 401) {
        over(error.message);
        return;
      }
    }
    await new Promise((done) => { setTimeout(done, PAUSES[Math.min(tries, PAUSES.length - 1)]); });
    if (stopping === mine) await load();
  }
}

function stop() {
  stopping?.abort();
  stopping = null;
  clearTimeout(later);
  dispatchEvent(new Event('outlast-away'));
}

async function begin() {
  const found = SECRET.exec(location.hash)?.[1];
  if (found) {
    sessionStorage.setItem(KEY, found);
    history.replaceState(null, '', location.pathname);
  }
  const secret = sessionStorage.getItem(KEY);
  if (!secret) {
    over('There is no link in this address.');
    return;
  }
  borrow(secret);
  fill(main, head, truth, gauges, line, turns, wrote);
  dispatchEvent(new Event('outlast-back'));
  await load();
  if (sessionStorage.getItem(KEY)) follow();
}

fill(wrote, h('h2', {}, 'Output'), out.element);
addEventListener('hashchange', () => { if (SECRET.test(location.hash)) location.reload(); });
document.addEventListener('visibilitychange', () => {
  clearTimeout(timer);
  if (document.hidden) timer = setTimeout(stop, HIDDEN_FOR);
  else if (!stopping && sessionStorage.getItem(KEY)) begin();
});
setInterval(() => { if (!document.hidden) tick(); }, 1000);
begin();
