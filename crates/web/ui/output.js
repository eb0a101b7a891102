// The output of a run by byte: the end first, then what comes, each byte once, also across the death of a daemon.
// A part of it is on the page at a time; scrolling to its edge, the slider and a link to a byte bring other parts.

import { get, open } from './api.js';
import { Screen } from './ansi.js';
import { fill, h, plain } from './dom.js';
import { bytes as sizeOf } from './format.js';

/** @import { RunPath } from '../types/page.d.ts' */

const TAIL = 500;
const PIECE = 65536;
const MOST_LINES = 2000;
const EDGE = 300;
const RETRY = [300, 600, 1200, 2400, 5000];

/** Takes frames out of bytes: calls `take(head, data)` for each. */
export function frames(take) {
  let pending = new Uint8Array(0);
  return (bytes) => {
    const all = new Uint8Array(pending.length + bytes.length);
    all.set(pending);
    all.set(bytes, pending.length);
    let at = 0;
    const view = new DataView(all.buffer);
    while (all.length - at >= 6) {
      const length = view.getUint32(at, true);
      if (all.length - at - 4 < length) break;
      const head = view.getUint16(at + 4, true);
      const body = at + 6;
      take(JSON.parse(new TextDecoder().decode(all.subarray(body, body + head))), all.subarray(body + head, at + 4 + length));
      at += 4 + length;
    }
    pending = all.slice(at);
  };
}

/** `t3.a1:65536`: a byte of an attempt. */
export function placeOf(text) {
  const found = /^t(\d+)\.a(\d+)(?::(\d+))?$/.exec(text ?? '');
  return found && { turn: Number(found[1]), attempt: Number(found[2]), offset: Number(found[3] ?? 0) };
}

/** `base` is where the run is asked for. @param {RunPath | '/api/s'} base */
export function output(base) {
  /** @type {`${RunPath | '/api/s'}/output`} */
  const path = `${base}/output`;
  const log = h('div', { class: 'log', role: 'log', 'aria-live': 'off', 'aria-label': 'Output', tabindex: '0', onscroll: scrolled, onclick: linked });
  const latest = h('button', { onclick: toEnd, hidden: true }, '\u2193 Newest');
  const pick = h('select', { 'aria-label': 'Attempt', onchange: choose });
  const slider = h('input', { type: 'range', min: '0', max: '1000', value: '1000', 'aria-label': 'Where in the output of this attempt', onchange: slid, hidden: true });
  const place = h('span', { class: 'dim' });
  const said = h('p', { class: 'said', role: 'status' });
  const times = h('input', { type: 'checkbox', id: 'times', onchange: () => log.classList.toggle('timed', times.checked) });
  const only = h('input', { type: 'checkbox', id: 'only-err', onchange: () => log.classList.toggle('only-err', only.checked) });
  const field = h('input', { type: 'search', 'aria-label': 'Search in the output', placeholder: 'Search', onkeydown: (event) => { if (event.key === 'Enter') here(); } });
  const found = h('ol', { class: 'found', hidden: true });
  const element = h('div', {}, h('div', { class: 'bar' }, pick, latest, h('span', { class: 'check' }, times, ' ', h('label', { for: 'times' }, 'times')),
    h('span', { class: 'check' }, only, ' ', h('label', { for: 'only-err' }, 'stderr only'))),
  h('div', { class: 'bar search' }, field, h('button', { onclick: here }, 'Find here'), h('button', { onclick: () => everywhere(null) }, 'Find in all')),
  said, found, log, slider, place);
  const known = new Map();
  const open_ = h('div', { class: 'open' });
  let current = null;
  let pinned = false;
  let browsing = false;
  let hasEnded = false;
  let following = true;
  let unseen = 0;
  let lines = [];
  let screen = null;
  let reading = null;
  let wake = () => {};
  let isAway = false;
  let closed = false;
  let loading = false;
  let sizes = new Map();
  let foundAt = 0;

  log.append(open_);
  addEventListener('outlast-away', away);
  addEventListener('outlast-back', back);

  function away() {
    isAway = true;
    reading?.abort();
  }

  function back() {
    isAway = false;
    wake();
  }

  /** An attempt that there is. The newest is followed, unless another was chosen. */
  function attempt(turn, number) {
    const key = `${turn}.${number}`;
    if (turn < 1 || number < 1 || known.has(key)) return;
    known.set(key, { turn, attempt: number });
    const all = sorted();
    fill(pick, h('option', { value: '' }, 'newest attempt'), all.map((it) => h('option', { value: `${it.turn}.${it.attempt}` }, `turn ${it.turn}, attempt ${it.attempt}`)));
    if (pinned || browsing) pick.value = `${current.turn}.${current.attempt}`;
    if (!current) {
      begin(all[all.length - 1]);
      loop();
    } else if (!pinned && !browsing) {
      reading?.abort();
      wake();
    }
  }

  /** How long the output of each attempt is, as the daemon says: `[[turn, attempt, bytes], \u2026]`. */
  function measured(list) {
    sizes = new Map(list.map(([turn, number, size]) => [`${turn}.${number}`, size]));
    for (const [turn, number] of list) attempt(turn, number);
    if (current) show();
  }

  function ended(is) {
    if (hasEnded === is) return;
    hasEnded = is;
    if (browsing) return;
    reading?.abort();
    wake();
  }

  function sorted() {
    return [...known.values()].sort((a, b) => a.turn - b.turn || a.attempt - b.attempt);
  }

  function next() {
    return pinned ? undefined : sorted().find((it) => it.turn > current.turn || (it.turn === current.turn && it.attempt > current.attempt));
  }

  /** @param {{ turn: number, attempt: number }} which @param {number | null} [from] */
  function begin(which, from = null) {
    current = { ...which, next: from, isWhole: false };
    screen = new Screen(commit);
  }

  function clear() {
    lines = [];
    unseen = 0;
    log.replaceChildren(open_);
    open_.replaceChildren();
  }

  async function loop() {
    let tries = 0;
    while (!closed) {
      while ((isAway || browsing) && !closed) await new Promise((done) => { wake = () => done(null); });
      if (closed) return;
      const mine = current;
      const after = next();
      const isOver = after || hasEnded || pinned;
      reading = new AbortController();
      let isWhole = false;
      const before = mine.next;
      try {
        isWhole = await read(mine, !isOver, reading.signal);
        tries = 0;
      } catch (error) {
        if (error.status === 404) isWhole = true;
        else if (error.status === 401 || closed) return;
      }
      if (closed) return;
      if (mine !== current || browsing) continue;
      if (mine.next !== before) tries = 0;
      if (isWhole && after) {
        endLine();
        begin(after, 0);
        notice(`turn ${after.turn}, attempt ${after.attempt}`);
      } else if (isWhole && isOver) {
        endLine();
        current.isWhole = true;
        if (lines.length === 0) notice('It has written nothing.');
        show();
        await new Promise((done) => { wake = () => done(null); });
      } else if (!reading.signal.aborted) {
        await new Promise((done) => { wake = () => done(null); setTimeout(done, RETRY[Math.min(tries, RETRY.length - 1)]); });
        tries += 1;
      }
    }
  }

  /** True once the last byte has come; false if the stream broke off. */
  async function read(mine, follow, signal) {
    const query = new URLSearchParams({ turn: mine.turn, attempt: mine.attempt });
    if (mine.next === null) query.set('tail', String(TAIL));
    else query.set('offset', mine.next);
    if (follow) query.set('follow', 'true');
    const reader = await open(`${path}?${query}`, signal);
    let isWhole = false;
    const feed = frames((head, data) => { if (mine === current && !browsing && take(head, data)) isWhole = true; });
    for (;;) {
      const { done, value } = await reader.read();
      if (done || closed) break;
      feed(value);
      show();
    }
    return isWhole;
  }

  function take(head, data) {
    switch (head.frame) {
      case 'data': {
        current.next ??= head.offset;
        const end = head.offset + data.length;
        if (end <= current.next) break;
        if (head.offset > current.next) notice(`bytes ${current.next} to ${head.offset} were not sent`, 'problem');
        const skip = Math.max(0, current.next - head.offset);
        screen.write(data.subarray(skip), head.offset + skip, head.stream, head.at_ms);
        current.next = end;
        break;
      }
      case 'gap':
        if (head.to > (current.next ?? 0)) {
          endLine();
          notice(gapWords(head));
          current.next = head.to;
        }
        break;
      case 'damaged':
        notice('The index of this output is damaged: streams and times are not known from here on.');
        break;
      case 'gone':
        notice(head.bytes === undefined || head.bytes === null ? 'The output of this attempt is no longer on disk.' : `The output of this attempt, ${head.bytes} bytes, is no longer on disk.`);
        break;
      case 'failed':
        notice(plain(head.message), 'problem');
        return true;
      case 'end':
        return true;
      default:
    }
    return false;
  }

  function gapWords(head) {
    return `${head.to - head.from} bytes not kept (${head.from} \u2026 ${head.to})`;
  }

  function commit(line, offset) {
    put({ element: line, offset, turn: current.turn, attempt: current.attempt });
  }

  function notice(text, kind = 'notice') {
    put({ element: h('div', { class: kind }, text), offset: null, turn: current.turn, attempt: current.attempt });
  }

  function endLine() {
    const rest = screen?.rest();
    if (rest) commit(rest, screen.offset);
    screen?.newLine(null);
    open_.replaceChildren();
  }

  function put(line) {
    lines.push(line);
    log.insertBefore(line.element, open_);
    if (!following) unseen += 1;
    // A reader who has scrolled up keeps what is on the screen, within a bound.
    while (lines.length > (following ? MOST_LINES : 2 * MOST_LINES)) lines.shift().element.remove();
  }

  function sizeNow() {
    return Math.max(current.next ?? 0, current.end ?? 0, sizes.get(`${current.turn}.${current.attempt}`) ?? 0);
  }

  function show() {
    const rest = browsing ? null : screen.rest();
    open_.replaceChildren(...(rest ? [rest] : []));
    if (following) log.scrollTop = log.scrollHeight;
    latest.hidden = following && !browsing;
    latest.textContent = unseen > 0 && !browsing ? `\u2193 ${unseen} new lines` : '\u2193 Newest';
    const size = sizeNow();
    slider.hidden = size < 2 * PIECE;
    const first = lines.find((it) => it.offset !== null);
    const at = following && !browsing ? size : topOffset() ?? first?.offset ?? 0;
    if (document.activeElement !== slider) slider.value = size > 0 ? String(Math.round((1000 * at) / size)) : '1000';
    slider.setAttribute('aria-valuetext', `byte ${at} of ${size}`);
    place.textContent = `turn ${current.turn}, attempt ${current.attempt}, byte ${browsing ? at : current.next ?? 0}${size > PIECE ? ` of ${sizeOf(size)}` : ''}${current.isWhole && !browsing ? ', whole' : ''}`;
  }

  /** The first byte of the first line that is on the screen. */
  function topOffset() {
    const top = log.getBoundingClientRect().top;
    for (const line of lines) if (line.offset !== null && line.element.getBoundingClientRect().bottom > top) return line.offset;
    return null;
  }

  function scrolled() {
    if (!current) return;
    const isEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 24;
    following = isEnd && !browsing;
    if (following) unseen = 0;
    latest.hidden = following;
    if (log.scrollTop < EDGE) earlier();
    else if (browsing && log.scrollTop + log.clientHeight > log.scrollHeight - EDGE) onwards();
  }

  function toEnd() {
    following = true;
    unseen = 0;
    if (!browsing) {
      show();
      return;
    }
    browsing = false;
    pinned = pick.value !== '' && pinned;
    clear();
    const all = sorted();
    begin(pinned ? known.get(pick.value) : all[all.length - 1]);
    if (!pinned) pick.value = '';
    wake();
  }

  function choose() {
    pinned = pick.value !== '';
    browsing = false;
    following = true;
    const all = sorted();
    const which = pinned ? known.get(pick.value) : all[all.length - 1];
    clear();
    begin(which);
    reading?.abort();
    wake();
  }

  /** The lines of `[from, to)` of an attempt. The first may begin before, and the last end after. */
  async function piece(which, from, to) {
    const list = [];
    const part = new Screen((line, offset) => list.push({ element: line, offset, turn: which.turn, attempt: which.attempt }));
    const query = new URLSearchParams({ turn: which.turn, attempt: which.attempt, offset: String(from), limit: String(Math.max(1, to - from)) });
    const reader = await open(`${path}?${query}`);
    let at = from;
    let isEnd = false;
    const feed = frames((head, data) => {
      if (head.frame === 'gap') {
        list.push({ element: h('div', { class: 'notice' }, gapWords(head)), offset: head.from, turn: which.turn, attempt: which.attempt });
        at = Math.max(at, head.to);
      } else if (head.frame === 'data' && head.offset < to) {
        part.write(data.subarray(0, to - head.offset), head.offset, head.stream, head.at_ms);
        at = Math.max(at, Math.min(to, head.offset + data.length));
      } else if (head.frame === 'end') isEnd = true;
    });
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      feed(value);
    }
    return { list, part, at, isEnd };
  }

  /** The piece before the first line that is shown. */
  async function earlier() {
    const top = lines.find((it) => it.offset !== null);
    if (loading || !top || top.offset === 0) return;
    loading = true;
    try {
      const from = Math.max(0, top.offset - PIECE);
      const { list, part } = await piece(top, from, top.offset);
      // A line longer than the piece has its end here, and its beginning before.
      if (list.length === 0 && part.rest()) list.push({ element: part.rest(), offset: from, turn: top.turn, attempt: top.attempt });
      if (from > 0 && list.length > 1) list.shift();
      if (lines[0] && list.length > 0 && lines.includes(top)) {
        const height = log.scrollHeight;
        following = false;
        const anchor = top.element;
        for (const line of list) log.insertBefore(line.element, anchor);
        lines = [...list, ...lines];
        log.scrollTop += log.scrollHeight - height;
        if (lines.length > MOST_LINES) {
          browse();
          while (lines.length > MOST_LINES) lines.pop().element.remove();
        }
      }
    } catch (error) {
      said.textContent = plain(error.message);
    }
    loading = false;
    show();
  }

  /** The end is no longer on the page, so nothing is followed until a person goes there. */
  function browse() {
    if (browsing) return;
    browsing = true;
    following = false;
    reading?.abort();
  }

  /** The piece after the last line, while the end is not on the page. */
  async function onwards() {
    const last = lines.findLast((it) => it.offset !== null);
    if (loading || !last) return;
    loading = true;
    try {
      const from = last.end ?? last.offset;
      const { list, part, at } = await piece(last, from, from + PIECE);
      if (at === from || (list.length === 0 && at < from + PIECE)) {
        loading = false;
        const all = sorted();
        const isNewest = all.length > 0 && all[all.length - 1].turn === last.turn && all[all.length - 1].attempt === last.attempt;
        if (isNewest && !pinned) toEnd();
        return;
      }
      if (list.length === 0) list.push({ element: part.rest(), offset: from, end: at, turn: last.turn, attempt: last.attempt });
      else if (part.offset !== null) list[list.length - 1].end = part.offset;
      else list[list.length - 1].end = at;
      // The last line is read again from its first byte, and may have been cut.
      if (!last.end) {
        last.element.remove();
        lines.splice(lines.indexOf(last), 1);
      }
      for (const line of list) {
        lines.push(line);
        log.insertBefore(line.element, open_);
      }
      if (lines.length > MOST_LINES) {
        const height = log.scrollHeight;
        const top = log.scrollTop;
        while (lines.length > MOST_LINES) lines.shift().element.remove();
        log.scrollTop = Math.max(0, top - (height - log.scrollHeight));
      }
    } catch (error) {
      said.textContent = plain(error.message);
    }
    loading = false;
    show();
  }

  /** Shows a byte: its line first, and what follows it. */
  async function jump(to) {
    const which = known.get(`${to.turn}.${to.attempt}`) ?? to;
    while (loading && !closed) await new Promise((done) => { setTimeout(done, 10); });
    if (!current) begin(which);
    browse();
    loading = true;
    try {
      const from = Math.max(0, to.offset - PIECE / 4);
      const { list, part, at } = await piece(which, from, to.offset + PIECE);
      // A line that goes on after the piece is shown once it is whole.
      const isLast = at < to.offset + PIECE;
      if (part.offset !== null && (isLast || list.length === 0)) list.push({ element: part.rest(), offset: part.offset, turn: which.turn, attempt: which.attempt });
      else if (list.length > 0) list[list.length - 1].end = part.offset ?? at;
      if (from > 0 && list.length > 1) list.shift();
      clear();
      begin({ ...which, end: at });
      for (const line of list) {
        lines.push(line);
        log.insertBefore(line.element, open_);
      }
      pick.value = `${which.turn}.${which.attempt}`;
      const line = lines.findLast((it) => it.offset !== null && it.offset <= to.offset) ?? lines[0];
      if (line) {
        line.element.classList.add('aim');
        log.scrollTop += line.element.getBoundingClientRect().top - log.getBoundingClientRect().top - 40;
      }
      said.textContent = lines.length === 0 ? 'There is nothing at this byte.' : '';
    } catch (error) {
      said.textContent = plain(error.message);
    }
    loading = false;
    show();
  }

  /** What the attempt wrote at a moment, or first after it. */
  async function instant(turn, number, at) {
    try {
      const query = new URLSearchParams({ turn, attempt: number, since: at, limit: '1' });
      const reader = await open(`${path}?${query}`);
      let offset = null;
      const feed = frames((head) => { if (head.frame === 'data') offset = Math.max(offset ?? 0, head.offset); });
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        feed(value);
      }
      await jump({ turn, attempt: number, offset: offset ?? 0 });
    } catch (error) {
      said.textContent = plain(error.message);
    }
  }

  function slid() {
    const offset = Math.floor((sizeNow() * Number(slider.value)) / 1000);
    if (Number(slider.value) >= 1000) {
      browse();
      toEnd();
    } else jump({ ...current, offset });
  }

  /** A click on a line makes the address one of its first byte. */
  function linked(event) {
    const line = event.target instanceof Element && event.target.closest('.line');
    if (!line || String(getSelection()) !== '') return;
    const known_ = lines.find((it) => it.element === line);
    if (!known_ || known_.offset === null) return;
    for (const other of log.querySelectorAll('.aim')) other.classList.remove('aim');
    line.classList.add('aim');
    history.replaceState(null, '', `${location.pathname}#at=t${known_.turn}.a${known_.attempt}:${known_.offset}`);
    said.textContent = `The address of this page is now a link to byte ${known_.offset}.`;
  }

  /** In what is on the page, from the last place on. */
  function here() {
    const text = field.value.toLowerCase();
    if (!text) return;
    const all = lines.filter((it) => it.offset !== null && it.element.textContent.toLowerCase().includes(text));
    said.textContent = `${all.length} of the ${lines.length} lines on this page have it.`;
    for (const other of log.querySelectorAll('.aim')) other.classList.remove('aim');
    if (all.length === 0) return;
    foundAt = (foundAt + 1) % all.length;
    following = false;
    all[foundAt].element.classList.add('aim');
    all[foundAt].element.scrollIntoView({ block: 'center' });
  }

  /** In the daemon, a bounded part at a time. */
  async function everywhere(from) {
    const q = field.value;
    if (!q) return;
    said.textContent = 'Searching\u2026';
    const query = new URLSearchParams({ q });
    if (from) for (const name of ['turn', 'attempt', 'offset']) query.set(`from_${name}`, from[name]);
    try {
      const answer = await get(`${path}/search?${query}`);
      if (!from) found.replaceChildren();
      found.hidden = false;
      for (const it of answer.matches) {
        const at = `t${it.turn}.a${it.attempt}:${it.offset}`;
        found.append(h('li', {}, h('a', { href: `${location.pathname}#at=${at}`, onclick: (event) => { event.preventDefault(); event.stopPropagation(); history.replaceState(null, '', `#at=${at}`); jump(it); } }, at), ' ', h('code', {}, plain(it.line))));
      }
      if (answer.next) found.append(h('li', {}, h('button', { onclick: (event) => { event.target.closest('li').remove(); everywhere(answer.next); } }, 'Search on')));
      said.textContent = `${answer.matches.length} places in ${sizeOf(answer.searched)}${answer.next ? ', and there is more to look through' : ''}.`;
    } catch (error) {
      said.textContent = plain(error.message);
    }
  }

  /** The attempt before or after the one that is shown. */
  function step(by) {
    if (!current) return;
    const all = sorted();
    const at = all.findIndex((it) => it.turn === current.turn && it.attempt === current.attempt);
    const which = all[at + by];
    if (!which) return;
    pick.value = `${which.turn}.${which.attempt}`;
    choose();
  }

  function close() {
    closed = true;
    removeEventListener('outlast-away', away);
    removeEventListener('outlast-back', back);
    reading?.abort();
    wake();
  }

  return { element, attempt, ended, close, measured, jump, instant, step, toEnd: () => { browse(); toEnd(); } };
}
