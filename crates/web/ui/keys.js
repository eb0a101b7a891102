// Keys as in `outlast top`. None counts while a field has the focus, and all can be switched off.

import { fill, h } from './dom.js';

const OFF = 'outlast.keys';
const HELP = [
  ['j k \u2191 \u2193', 'move in the list'], ['enter o', 'open the run'], ['esc', 'back; in the list it removes the filter'], ['/', 'filter'],
  ['a', 'with or without ended runs'], ['T', 'tree'], ['1 2 3 4', 'sort by needs you, newest, spend, name'], ['A', 'answer the question'],
  ['m', 'send a message'], ['p', 'pause, or resume'], ['r', 'resume'], ['s', 'stop; it asks first'], ['\u2190 \u2192', 'in an open run: the attempt before or after'],
  ['end', 'follow the output again'], ['g then n r s p d', 'go to needs you, runs, schedule, spend, doctor'], ['?', 'show these keys'],
];

let handlers = {};
let before = null;

/** The keys of the page that is shown: a function for each, or for a word such as `Escape`. */
export function keys(map) {
  handlers = map;
}

export function begin(go) {
  const pages = { n: '/needs-you', r: '/runs', s: '/schedule', p: '/spend', d: '/doctor' };
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key === 'Escape' && dialog.open) return;
    const field = event.target instanceof Element && event.target.closest('input:not([type=range]), textarea, select');
    if (field instanceof HTMLElement && event.key === 'Escape') {
      field.blur();
      return;
    }
    if (field || dialog.open || localStorage.getItem(OFF) === 'off') return;
    if (event.target instanceof Element && event.target.closest('[role=tablist]') && event.key.startsWith('Arrow')) return;
    const [first, key] = [before, event.key];
    before = null;
    if (first === 'g' && pages[key]) go(pages[key]);
    else if (key === 'g') before = 'g';
    else if (key === '?') show();
    else if (handlers[key]) {
      if (handlers[key](event) === false) return;
    } else return;
    event.preventDefault();
  });
}

const dialog = h('dialog', { 'aria-labelledby': 'keys-title' });

export function show() {
  const isOff = localStorage.getItem(OFF) === 'off';
  const box = h('input', { type: 'checkbox', id: 'keys-on', onchange: () => localStorage.setItem(OFF, box.checked ? 'on' : 'off') });
  box.checked = !isOff;
  fill(dialog, h('h2', { id: 'keys-title' }, 'Keys'),
    h('dl', { class: 'keys' }, HELP.map(([key, words]) => [h('dt', {}, h('kbd', {}, key)), h('dd', {}, words)])),
    h('p', { class: 'check' }, box, ' ', h('label', { for: 'keys-on' }, 'Use these keys')),
    h('button', { onclick: () => dialog.close() }, 'Close'));
  if (!dialog.isConnected) document.body.append(dialog);
  dialog.showModal();
}
