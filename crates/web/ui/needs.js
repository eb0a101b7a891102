// What waits for a person, one card each, answerable in place.

import { get } from './api.js';
import { asks } from './asks.js';
import { fill, find, h, order, plain } from './dom.js';
import { since, truths } from './format.js';
import { keys } from './keys.js';
import { listen, state } from './live.js';
import { name } from './runs.js';

/** The shortest time between two drawings of what comes. */
const PACE = 100;

export function needsYou(main) {
  const list = h('div', { class: 'list' });
  fill(main, h('h1', {}, 'Needs you'), list);
  const cards = new Map();
  const nothing = h('p', {}, 'Nothing needs you. ', h('a', { href: '/runs' }, 'All runs'));

  function draw() {
    const rows = [...state.rows.values()].filter((row) => row.told.group === 'needs_you');
    rows.sort((a, b) => ((a.changed_at ?? '') < (b.changed_at ?? '') ? -1 : 1));
    const kept = new Set(rows.map((row) => row.id));
    for (const id of [...cards.keys()]) if (!kept.has(id)) cards.delete(id);
    const elements = rows.map((row) => card(row));
    order(list, elements.length > 0 || state.status === 'loading' ? elements : [nothing]);
  }

  function card(row) {
    const key = `${row.asks_seq}.${row.told.words}`;
    let known = cards.get(row.id);
    if (!known) {
      known = { element: h('section', { class: 'card', 'data-run': row.id }), key: null };
      cards.set(row.id, known);
    }
    // A card stays as it is, with what is typed into it, until it is about something else.
    if (known.key !== key) {
      known.key = key;
      load(known, row);
    }
    return known.element;
  }

  async function load(known, row) {
    const { key } = known;
    try {
      const view = await get(`/api/runs/${encodeURIComponent(row.id)}`);
      if (known.key !== key) return;
      fill(known.element,
        h('h2', {}, h('a', { href: `/runs/${row.id}` }, name(row)), ' ', h('span', { class: 'state' }, plain(view.told.words))),
        h('p', { class: 'dim' }, since(view.run.blocked?.since ?? view.run.health_since ?? row.changed_at, 'since ')),
        truths(view.truths),
        asks(view, (why) => { Object.assign(known, { key: null, why }); draw(); }, known.why));
      known.why = undefined;
    } catch (error) {
      if (known.key === key) fill(known.element, h('p', { class: 'problem', role: 'alert' }, plain(error.message)));
    }
  }

  keys({ A: () => find(list, '.card textarea, .card button')?.focus() });
  let soon = null;
  draw();
  const stop = listen((news) => {
    if (news.all) draw();
    else soon ??= setTimeout(() => { soon = null; draw(); }, PACE);
  });
  return { close: () => { stop(); clearTimeout(soon); } };
}
