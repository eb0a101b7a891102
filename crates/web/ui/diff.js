// What turns changed in the workspace: files, and the lines of each.

import { get } from './api.js';
import { fill, h, plain, problem } from './dom.js';

/** @import { RunPath } from '../types/page.d.ts' */

const MOST_LINES = 3000;

/** @param {HTMLElement} box @param {RunPath} path @param {string} turns */
export async function diff(box, path, turns) {
  fill(box, h('p', { class: 'dim' }, 'Comparing\u2026'));
  try {
    const told = await get(`${path}/diff${turns ? `?turns=${encodeURIComponent(turns)}` : ''}`);
    fill(box, h('p', {}, `From ${plain(told.from)} to ${plain(told.to)}: ${told.files.length}${told.files_cut ? ' or more' : ''} files, `, h('span', { class: 'plus' }, `+${told.added}`), ' ', h('span', { class: 'minus' }, `\u2212${told.deleted}`)),
      told.files.length === 0 && h('p', {}, 'Nothing is different.'),
      h('ul', { class: 'files' }, told.files.map((it) => h('li', {}, h('code', {}, plain(it.path)), ` ${plain(it.change)}`, it.was && ` from ${plain(it.was)}`, it.added !== null && it.added !== undefined ? ` +${it.added} \u2212${it.deleted}` : ' (not text)'))),
      told.patch && patch(told.patch), told.patch_cut && h('p', { class: 'truth' }, 'The diff is longer than this; outlast diff has all of it.'));
  } catch (error) {
    fill(box, problem(error));
  }
}

function patch(text) {
  const lines = text.split('\n');
  const kind = (line) => (line.startsWith('+++') || line.startsWith('---') || line.startsWith('diff ') ? 'd-file' : line.startsWith('+') ? 'd-plus' : line.startsWith('-') ? 'd-minus' : line.startsWith('@@') ? 'd-at' : null);
  return h('div', { class: 'log diff', tabindex: '0', role: 'region', 'aria-label': 'Diff' }, lines.slice(0, MOST_LINES).map((line) => h('div', { class: kind(line) }, plain(line) || ' ')),
    lines.length > MOST_LINES && h('div', { class: 'notice' }, `${lines.length - MOST_LINES} more lines; outlast diff has them`));
}
