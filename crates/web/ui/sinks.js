// Where notices go, and which sinks cannot be told.

import { get, post } from './api.js';
import { fill, h, plain, problem } from './dom.js';
import { since, time } from './format.js';

/** @import { SinkRow } from '../types/page.d.ts' */

export function page(main) {
  const gone = new AbortController();
  const body = h('div', {});
  fill(main, h('h1', {}, 'Sinks'), body);

  async function load() {
    try {
      const list = await get('/api/sinks', gone.signal);
      fill(body, list.length === 0 ? h('p', {}, 'No sink is set up, so notices reach no person. In config.toml: ', h('code', {}, '[sinks.phone] kind = "ntfy"'), '; docs/notices.md has the kinds.') : list.map((it) => card(it, load)));
    } catch (error) {
      if (!gone.signal.aborted) fill(body, problem(error));
    }
  }

  load();
  return { close: () => gone.abort() };
}

/** @param {SinkRow} it @param {() => void} again */
function card(it, again) {
  const said = h('p', { class: 'said', role: 'status' });
  const box = h('div', { class: 'buttons' });
  const give = async (verb) => {
    for (const button of box.querySelectorAll('button')) button.disabled = true;
    said.textContent = 'Sending\u2026';
    try {
      if (verb === 'test') {
        const told = await post('/api/sinks/test', { sink: it.name });
        fill(said, told.delivered ? 'Delivered. ' : 'Not delivered. ', plain(told.detail ?? ''));
      } else {
        await post('/api/sinks/enable', { sink: it.name });
        again();
      }
    } catch (error) {
      fill(said, problem(error));
    }
    for (const button of box.querySelectorAll('button')) button.disabled = false;
  };
  const isNamed = it.kind && !it.name.includes(':');
  if (isNamed) box.append(h('button', { onclick: () => give('test') }, 'Send a test'));
  if (isNamed && it.disabled_at) box.append(h('button', { onclick: () => give('enable') }, 'Use it again'));
  return h('section', { class: 'card' }, h('h2', {}, plain(it.name), ' ', h('span', { class: 'dim' }, plain([it.kind ?? 'no longer in the config', it.level].filter(Boolean).join(', ')))),
    h('p', {}, `${it.delivered} delivered, ${it.pending} waiting, ${it.given_up} given up`, it.oldest_pending_at && ['; the oldest waits ', since(it.oldest_pending_at)], '.'),
    it.failing_since && h('p', { class: 'truth' }, 'It cannot be told since ', time(it.failing_since), it.problem && [': ', plain(it.problem)], it.next_try_at && ['. The next try is at ', time(it.next_try_at)], '.'),
    it.disabled_at && h('p', { class: 'truth' }, 'It was given up on at ', time(it.disabled_at), '; nothing is sent to it.'), box, said);
}
