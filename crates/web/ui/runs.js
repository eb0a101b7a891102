// All runs, live, what needs a person first. Only the rows that are on the screen exist as elements.

import { fill, h, order, plain } from './dom.js';
import { since, spend, truths } from './format.js';
import { keys } from './keys.js';
import { listen, older, state } from './live.js';

/** @import { Row } from '../types/page.d.ts' */

const GROUPS = [['needs_you', 'Needs you'], ['running', 'Running'], ['waiting', 'Waiting'], ['queued', 'Queued'], ['ended', 'Ended']];
const GLYPHS = { needs_you: '!', running: '\u25b6', waiting: '\u25f7', queued: '\u2026', ended: '\u25a0' };
const SORTS = [['needs', 'what needs you'], ['newest', 'newest'], ['spend', 'spend'], ['name', 'name']];

/** Pixels of a row that was not on the screen yet, and pixels beyond the screen that are drawn. */
const GUESS = 96;
const BEYOND = 600;
/** The shortest time between two drawings of what comes. */
const PACE = 150;

/** @param {{ id: string, name?: string | null }} row */
export function name(row) {
  return plain(row.name ?? row.id.slice(0, 6));
}

export function runs(main, go) {
  const asked = new URLSearchParams(location.search);
  const filter = h('input', { type: 'search', id: 'filter', value: asked.get('q') ?? '', placeholder: 'name, id, state or key=value', oninput: filtered });
  const sort = h('select', { id: 'sort', onchange: filtered }, SORTS.map(([value, words]) => h('option', { value, selected: value === asked.get('sort') }, words)));
  const tree = h('input', { type: 'checkbox', id: 'tree', onchange: filtered });
  const ended = h('input', { type: 'checkbox', id: 'ended', onchange: filtered });
  tree.checked = asked.get('tree') === '1';
  ended.checked = asked.get('ended') !== '0';
  const counts = h('p', { class: 'counts' });
  const pill = h('button', { class: 'pill', hidden: true, onclick: () => { frozen = null; draw(); } }, 'The order has changed: show it');
  const [above, below] = [h('div', {}), h('div', {})];
  const body = h('div', { class: 'list' });
  const more = h('button', { onclick: moreOf, hidden: true }, 'Older runs');
  fill(main, h('h1', {}, 'Runs'), h('div', { class: 'bar filters' }, h('label', { for: 'filter', class: 'hidden' }, 'Filter'), filter,
    h('span', { class: 'pair' }, h('label', { for: 'sort' }, 'by '), sort), h('span', { class: 'check' }, tree, ' ', h('label', { for: 'tree' }, 'tree')), h('span', { class: 'check' }, ended, ' ', h('label', { for: 'ended' }, 'ended'))),
  counts, pill, h('div', { class: 'virtual', onpointerenter: () => { over = true; }, onpointerleave: () => { over = false; frozen = null; later(); } }, above, body, below), more);
  const cards = new Map();
  const heights = new Map();
  const heads = new Map(GROUPS.map(([group, words]) => [group, h('h2', {}, words)]));
  let items = [];
  let soon = null;
  let drawing = null;
  let over = false;
  let frozen = null;
  let isClosed = false;

  function filtered() {
    const address = new URLSearchParams();
    if (filter.value.trim()) address.set('q', filter.value.trim());
    if (sort.value !== 'needs') address.set('sort', sort.value);
    if (tree.checked) address.set('tree', '1');
    if (!ended.checked) address.set('ended', '0');
    const text = String(address);
    history.replaceState(null, '', text ? `/runs?${text}` : '/runs');
    frozen = null;
    draw();
  }

  async function moreOf() {
    more.disabled = true;
    try {
      await older();
    } catch (error) {
      counts.textContent = error.message;
    }
    more.disabled = false;
  }

  /** What is to be shown, in order: heads of groups, and ids of runs with how deep they are. */
  function wanted() {
    const words = filter.value.trim().toLowerCase();
    const rows = [...state.rows.values()].filter((row) => (ended.checked || row.told.group !== 'ended') && matches(row, words));
    if (tree.checked) return treeOf(rows);
    if (sort.value !== 'needs') return rows.sort(COMPARE[sort.value]).map((row) => ({ id: row.id }));
    const list = [];
    /** @type {Map<string, Row[]>} */
    const by = new Map(GROUPS.map(([group]) => [group, []]));
    for (const row of rows) by.get(row.told.group)?.push(row);
    for (const [group, found] of by) {
      const some = found.sort(COMPARE.newest);
      if (some.length > 0) list.push({ head: group }, ...some.map((row) => ({ id: row.id })));
    }
    return list;
  }

  function draw() {
    clearTimeout(soon);
    soon = null;
    const fresh = wanted();
    const key = fresh.map((it) => it.head ?? it.id).join();
    // Rows do not move under a finger or a pointer.
    const isHeld = (over || body.contains(document.activeElement)) && frozen !== null && frozen.key !== key;
    if (isHeld) items = frozen.items.filter((it) => it.head || state.rows.has(it.id));
    else {
      items = fresh;
      frozen = { key, items };
    }
    pill.hidden = !isHeld;
    counts.textContent = GROUPS.map(([group, words]) => `${words} ${state.counts[group]}`).join(' \u00b7 ') + (state.truncated ? ' (the newest)' : '');
    more.hidden = !state.truncated || !ended.checked;
    for (const id of [...cards.keys()]) if (!state.rows.has(id)) cards.delete(id);
    paint();
  }

  /** Makes the rows that are near the screen. */
  function paint() {
    drawing = null;
    if (isClosed) return;
    const begin = above.getBoundingClientRect().top;
    const [from, to] = [-begin - BEYOND, -begin + innerHeight + BEYOND];
    let [at, before, after] = [0, 0, 0];
    const elements = [];
    for (const item of items) {
      const height = heights.get(item.head ?? item.id) ?? (item.head ? 40 : GUESS);
      if (at + height < from) before += height;
      else if (at > to) after += height;
      else elements.push(item.head ? heads.get(item.head) : card(item));
      at += height;
    }
    if (items.length === 0 && state.status !== 'loading') elements.push(empty());
    above.style.height = `${before}px`;
    below.style.height = `${after}px`;
    order(body, elements);
    for (const element of elements) if (element.dataset.key) heights.set(element.dataset.key, element.offsetHeight + 8);
  }

  function card({ id, depth = 0 }) {
    const row = state.rows.get(id);
    const known = cards.get(id);
    // The list drops what is gone with its next drawing.
    if (!row) return known?.element ?? h('div', {});
    if (known?.row === row && known.depth === depth) return known.element;
    const element = known?.element ?? h('a', { class: 'row', href: `/runs/${id}`, 'data-key': id });
    element.className = `row ${row.told.group}`;
    element.style.marginLeft = depth > 0 ? `${Math.min(depth, 6) * 1.25}rem` : '';
    fill(element, line(row));
    cards.set(id, { row, depth, element });
    return element;
  }

  function empty() {
    const many = state.rows.size;
    if (many > 0) return h('p', {}, `None of ${many} match. `, h('button', { onclick: () => { filter.value = ''; ended.checked = true; filtered(); } }, 'Clear the filter'));
    return h('p', {}, 'No runs yet. Start one: ', h('code', {}, 'outlast run -d -- ./train.sh'), ', or ', h('a', { href: '/start' }, 'from a loop file'), '.');
  }

  function later() {
    soon ??= setTimeout(draw, PACE);
  }

  function scrolled() {
    drawing ??= requestAnimationFrame(paint);
  }

  /** Moves the focus by so many rows. */
  function move(by) {
    const ids = items.filter((it) => it.id).map((it) => it.id);
    const here = ids.indexOf(document.activeElement?.closest?.('a.row')?.getAttribute('data-key'));
    const id = ids[Math.max(0, Math.min(ids.length - 1, here < 0 ? 0 : here + by))];
    if (!id) return;
    if (!cards.get(id)?.element.isConnected) {
      let top = scrollY + above.getBoundingClientRect().top - innerHeight / 2;
      for (const item of items) {
        if (item.id === id) break;
        top += heights.get(item.head ?? item.id) ?? GUESS;
      }
      scrollTo(0, top);
      paint();
    }
    cards.get(id)?.element.focus();
    cards.get(id)?.element.scrollIntoView({ block: 'nearest' });
  }

  const chosen = () => document.activeElement?.closest?.('a.row')?.getAttribute('data-key');
  const open = (hash) => () => { if (chosen()) go(`/runs/${chosen()}${hash}`); };
  const sorted = (value) => () => { sort.value = value; filtered(); };
  keys({
    j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1), PageDown: () => move(10), PageUp: () => move(-10),
    Home: () => move(-1e9), End: () => move(1e9), o: open(''), '/': () => filter.focus(), Escape: () => { filter.value = ''; filtered(); },
    a: () => { ended.checked = !ended.checked; filtered(); }, T: () => { tree.checked = !tree.checked; filtered(); },
    1: sorted('needs'), 2: sorted('newest'), 3: sorted('spend'), 4: sorted('name'),
    A: open('#answer'), m: open('#message'), s: open('#stop'), p: open('#pause'),
  });
  addEventListener('scroll', scrolled, { passive: true });
  addEventListener('resize', scrolled);
  draw();
  const stop = listen((news) => { if (news.all) draw(); else later(); });
  return {
    close: () => {
      isClosed = true;
      stop();
      clearTimeout(soon);
      cancelAnimationFrame(drawing);
      removeEventListener('scroll', scrolled);
      removeEventListener('resize', scrolled);
    },
  };
}

/** Parents before their children; a child whose parent is not shown stands by itself. @param {Row[]} rows */
function treeOf(rows) {
  rows.sort(COMPARE.newest);
  const shown = new Set(rows.map((row) => row.id));
  const below = new Map();
  for (const row of rows) {
    const parent = row.parent && shown.has(row.parent) ? row.parent : '';
    if (!below.has(parent)) below.set(parent, []);
    below.get(parent).push(row.id);
  }
  const list = [];
  const add = (parent, depth) => {
    for (const id of below.get(parent) ?? []) {
      list.push({ id, depth });
      add(id, depth + 1);
    }
  };
  add('', 0);
  return list;
}

/** What a row of a list says. @param {Row} row */
export function line(row) {
  const turn = row.turn > 0 ? `t${row.turn}${row.max_turns ? `/${row.max_turns}` : ''}` : '';
  const wakes = row.wake_at && row.told.group === 'waiting' && new Date(row.wake_at) > new Date();
  return [
    h('span', { class: 'head' },
      h('span', { class: 'glyph', 'aria-hidden': 'true' }, GLYPHS[row.told.group]), ' ',
      h('strong', {}, name(row)), ' ', h('code', { class: 'dim' }, row.id.slice(0, 6)), ' ',
      h('span', { class: 'state' }, plain(row.told.words))),
    h('span', { class: 'facts' }, wakes ? since(row.wake_at, 'goes on in ') : since(row.ended_at ?? row.changed_at ?? row.created_at, '', ' ago'), turn && h('span', {}, turn), h('span', {}, spend(row))),
    h('span', { class: 'says' }, plain(row.question ?? row.last_line ?? row.summary ?? row.what)),
    truths(row.truths).map((it) => h('span', { class: 'truth' }, ...it.childNodes)),
  ];
}

/** @type {Record<string, (a: Row, b: Row) => number>} */
const COMPARE = {
  newest: (a, b) => (a.created_at < b.created_at ? 1 : a.created_at > b.created_at ? -1 : a.id < b.id ? -1 : 1),
  spend: (a, b) => (b.cost_usd ?? 0) - (a.cost_usd ?? 0) || (b.tokens ?? 0) - (a.tokens ?? 0),
  name: (a, b) => (a.name ?? a.id).localeCompare(b.name ?? b.id),
};

/** @param {Row} row @param {string} wanted */
function matches(row, wanted) {
  if (!wanted) return true;
  const text = [row.name, row.id, row.told.words, row.told.group, row.what, row.health, ...Object.entries(row.labels ?? {}).map((it) => it.join('='))];
  return wanted.split(/\s+/).every((word) => text.some((it) => (it ?? '').toLowerCase().includes(word)));
}
