// The terminal of a run. Watching is all that it does until a person presses Type; then keys go to the program, and the
// journal says who may press them. The server sends rows of text, never what the program wrote to its terminal.

import { hasSession, post } from './api.js';
import { fill, h, plain } from './dom.js';

const PALETTE = ['#5c6670', '#ff8a85', '#56d364', '#e3b341', '#7ab8ff', '#d2a8ff', '#56d4dd', '#d0d7de', '#8b949e', '#ffa198', '#7ee787', '#f2cc60', '#a5d6ff', '#e2c5ff', '#76e3ea', '#ffffff'];
const NAMED = ['Enter', 'Tab', 'Backspace', 'Escape', 'ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight', 'Home', 'End', 'PageUp', 'PageDown', 'Insert', 'Delete'];
const BAR = [['Esc', 'Escape'], ['Tab', 'Tab'], ['\u2191', 'ArrowUp', 'Up'], ['\u2193', 'ArrowDown', 'Down'], ['\u2190', 'ArrowLeft', 'Left'], ['\u2192', 'ArrowRight', 'Right'], ['\u23ce', 'Enter', 'Enter']];

const run = /^\/runs\/([A-Za-z0-9_-]+)\/term$/.exec(location.pathname)?.[1];
const status = h('span', { class: 'status', role: 'status', 'aria-live': 'polite' });
const type = h('button', { class: 'danger', onclick: () => connect(true) }, 'Type');
const watch = h('button', { hidden: true, onclick: () => connect(false) }, 'Only watch');
const again = h('button', { hidden: true, onclick: () => connect(false) }, 'Try again');
const screen = h('div', { class: 'screen', role: 'img', 'aria-label': 'the screen of the terminal' });
const cursor = h('span', { class: 'cursor', hidden: true });
const main = h('main', { id: 'main', tabindex: '0' }, screen);
const line = h('input', { 'aria-label': 'Text to type', autocapitalize: 'off', autocomplete: 'off', autocorrect: 'off', spellcheck: 'false', placeholder: 'type here' });
const ctrl = h('button', { 'aria-pressed': 'false', onclick: () => hold(ctrl.getAttribute('aria-pressed') === 'false') }, 'Ctrl');
const bar = h('div', { class: 'keybar', hidden: true }, line, ctrl,
  BAR.map(([words, name, label]) => h('button', { 'aria-label': label ?? words, onclick: () => press({ name }) }, words)));
const rows = [];
let socket = null;
let typing = false;

document.body.append(
  h('header', {}, h('a', { href: `/runs/${run}` }, '\u2039 run'), h('strong', {}, `terminal of ${run}`), status, type, watch, again), main, bar);
if (!run || !hasSession()) over({ message: 'This browser has no session.', hint: 'outlast web url prints a link that opens one' });
else connect(false);

async function connect(keys) {
  socket?.close();
  socket = null;
  stands(false);
  status.textContent = 'connecting\u2026';
  let ticket;
  try {
    ({ ticket } = await post('/api/ticket', { run, keys }));
  } catch (error) {
    over(error);
    return;
  }
  const address = new URL(`/api/tty/${run}`, location.href);
  address.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
  const mine = new WebSocket(address, ['outlast-tty', `ticket.${ticket}`]);
  socket = mine;
  mine.onmessage = (event) => mine === socket && take(JSON.parse(event.data));
  mine.onclose = () => mine === socket && over({ message: 'The connection was lost.' });
}

function stands(keys) {
  typing = keys;
  document.body.classList.toggle('typing', keys);
  status.textContent = keys ? 'you type' : 'watching';
  type.hidden = keys;
  watch.hidden = !keys;
  bar.hidden = !keys;
  again.hidden = true;
  if (keys) line.focus();
}

function over(why) {
  socket?.close();
  socket = null;
  stands(false);
  type.hidden = true;
  again.hidden = false;
  status.textContent = [why.message, why.hint].filter(Boolean).map(plain).join(' ');
}

function take(news) {
  if (news.over) {
    over(news.over);
    return;
  }
  if (news.opened) {
    stands(news.opened.keys);
    return;
  }
  const [height] = news.size;
  while (rows.length < height) {
    rows.push(h('div', { class: 'tr' }));
    screen.append(rows.at(-1));
  }
  while (rows.length > height) rows.pop().remove();
  for (const [number, pieces] of Object.entries(news.rows)) fill(rows[number], pieces.map(piece));
  cursor.hidden = !news.cursor;
  if (news.cursor) {
    cursor.style.left = `${news.cursor[1]}ch`;
    rows[news.cursor[0]]?.append(cursor);
  }
  screen.dataset.size = news.size.join('x');
}

function piece([text, fore, back, weights]) {
  const names = [weights.includes('b') && 'a-bold', weights.includes('d') && 'a-dim', weights.includes('i') && 'a-italic', weights.includes('u') && 'a-under', weights.includes('w') && 'wide'];
  const element = h('span', { class: names.filter(Boolean).join(' ') || null }, text);
  if (fore !== null) element.style.color = color(fore);
  if (back !== null) element.style.background = color(back);
  return element;
}

function color(it) {
  if (Array.isArray(it)) return `rgb(${it.map(Number).join(' ')})`;
  if (it < 16) return PALETTE[it];
  if (it > 231) return `rgb(${Array(3).fill((it - 232) * 10 + 8).join(' ')})`;
  const part = (divisor) => [0, 95, 135, 175, 215, 255][Math.floor((it - 16) / divisor) % 6];
  return `rgb(${part(36)} ${part(6)} ${part(1)})`;
}

function hold(is) {
  ctrl.setAttribute('aria-pressed', String(is));
  line.focus();
}

function press(key) {
  if (typing) socket?.send(JSON.stringify({ key }));
  hold(false);
}

addEventListener('keydown', (event) => {
  const isButton = event.target instanceof HTMLButtonElement || event.target instanceof HTMLAnchorElement;
  if (!typing || event.metaKey || event.isComposing || isButton) return;
  const isCtrl = event.ctrlKey || ctrl.getAttribute('aria-pressed') === 'true';
  const isLetter = [...event.key].length === 1;
  if (!NAMED.includes(event.key) && !(isLetter && (isCtrl || event.altKey || event.target !== line))) return;
  event.preventDefault();
  press({ name: event.key, ctrl: isCtrl, alt: event.altKey });
});
// What a phone's keyboard composes has no keys of its own, and comes as text.
line.addEventListener('input', (/** @type {InputEvent} */ event) => {
  if (event.isComposing) return;
  const text = line.value;
  line.value = '';
  if (ctrl.getAttribute('aria-pressed') === 'true' && [...text].length === 1) press({ name: text, ctrl: true });
  else if (typing && text) socket?.send(JSON.stringify({ text }));
});
