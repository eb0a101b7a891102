// Starts a run from a loop file of the machine that the daemon is on.

import { newId, post } from './api.js';
import { fill, h, plain, problem } from './dom.js';
import { state } from './live.js';

export function page(main, go) {
  const file = h('input', { id: 'path', required: true, placeholder: '/path/to/project/WORKFLOW.md', autocomplete: 'off', spellcheck: 'false' });
  const name = h('input', { id: 'name', autocomplete: 'off' });
  const task = h('textarea', { id: 'task', rows: '3' });
  const said = h('div', { role: 'status' });
  const button = h('button', { class: 'primary' }, 'Start');
  let [id, about] = [newId(), ''];

  async function start(event) {
    event.preventDefault();
    if (state.status === 'gone') {
      said.textContent = 'The daemon does not answer, so nothing was sent.';
      return;
    }
    const what = [file.value, name.value, task.value].join('\n');
    // The same form is the same run, however often it is sent; another form is another run.
    if (what !== about) [id, about] = [about === '' ? id : newId(), what];
    button.disabled = true;
    said.textContent = 'Sent\u2026';
    try {
      const made = await post('/api/runs', { id, path: file.value.trim(), name: name.value.trim(), task: task.value });
      go(`/runs/${made.id}`);
    } catch (error) {
      fill(said, problem(error), (error.problems ?? []).map((it) => h('p', { class: 'problem' }, plain(it))));
    }
    button.disabled = false;
  }

  fill(main, h('h1', {}, 'Start a run'), h('p', {}, 'From a loop file on the machine of the daemon, in the directory of the file, with the environment of ', h('code', {}, 'outlast web'), '.'),
    h('form', { class: 'fields', onsubmit: start }, h('label', { for: 'path' }, 'Path of the loop file'), file, h('label', { for: 'name' }, 'Name, if it should have one'), name, h('label', { for: 'task' }, "Task, in place of the file's"), task, button), said);
  return { close: () => {} };
}
