// What is wrong, each with the command that helps.

import { get } from './api.js';
import { fill, h, plain, problem } from './dom.js';

/** @import { Finding } from '../types/page.d.ts' */

const LEVELS = [['problem', 'Problems', '\u2717'], ['warning', 'Warnings', '\u26a0'], ['ok', 'In order', '\u2713']];

export function page(main) {
  const gone = new AbortController();
  const body = h('div', {});
  const again = h('button', { onclick: load }, 'Look again');
  fill(main, h('h1', {}, 'Doctor'), body, h('p', {}, again));

  async function load() {
    again.disabled = true;
    fill(body, h('p', { class: 'dim', role: 'status' }, 'Reading the journal and the state directory\u2026'));
    try {
      const told = await get('/api/doctor', gone.signal);
      const known = new Set(LEVELS.map(([level]) => level));
      fill(body, h('p', {}, told.healthy ? 'Nothing is wrong.' : 'Something needs a look.'), LEVELS.map(([level, words, glyph]) => {
        const some = told.findings.filter((it) => it.level === level || (level === 'warning' && !known.has(it.level)));
        return some.length > 0 && [h('h2', {}, words), h('ul', { class: 'findings' }, some.map((it) => finding(it, glyph)))];
      }));
    } catch (error) {
      if (!gone.signal.aborted) fill(body, problem(error));
    }
    again.disabled = false;
  }

  load();
  return { close: () => gone.abort() };
}

/** @param {Finding} it @param {string} glyph */
function finding(it, glyph) {
  return h('li', {}, h('span', { 'aria-hidden': 'true' }, `${glyph} `), h('strong', {}, plain(it.subject)), ' ', plain(it.message),
    it.hint && h('div', { class: 'bar' }, h('code', {}, plain(it.hint)), h('button', { onclick: (event) => copy(event.target, it.hint) }, 'Copy')));
}

async function copy(button, text) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = 'Copied';
  } catch {
    button.textContent = 'Cannot copy here';
  }
}
