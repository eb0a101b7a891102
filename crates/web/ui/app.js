// The page: session, navigation, what every page has around it.

import { enter, enterNamed, get, hasSession, leave, newId, post } from './api.js';
import { fill, h, plain } from './dom.js';
import { since, tick } from './format.js';
import { begin as beginKeys, keys, show as showKeys } from './keys.js';
import * as live from './live.js';
import { needsYou } from './needs.js';
import { report } from './report.js';
import { run } from './run.js';
import { runs } from './runs.js';

const PAGES = [['/needs-you', 'Needs you'], ['/runs', 'Runs'], ['/report', 'Report'], ['/schedule', 'Schedule'], ['/spend', 'Spend']];
const MORE = [['/sinks', 'Sinks'], ['/doctor', 'Doctor'], ['/start', 'Start a run']];
const THEMES = [['', 'as the system'], ['light', 'light'], ['dark', 'dark']];

/** Pages that are loaded when they are opened. */
const LATER = {
  '/schedule': () => import('./schedule.js'),
  '/spend': () => import('./spend.js'),
  '/sinks': () => import('./sinks.js'),
  '/doctor': () => import('./doctor.js'),
  '/start': () => import('./start.js'),
};

const main = h('main', { id: 'main', tabindex: '-1' });
const banner = h('div', { class: 'banner', role: 'status', 'aria-live': 'polite' });
const links = new Map([...PAGES, ...MORE].map(([path, name]) => [path, h('a', { href: path }, name)]));
const badge = h('span', { class: 'badge', hidden: true });
const status = h('span', { class: 'status' });
const out = h('button', { class: 'quiet', onclick: signOut }, 'Sign out');
const news = h('div', { class: 'hidden', role: 'status', 'aria-live': 'polite' });
const theme = h('select', { id: 'theme', onchange: () => paint(theme.value) }, THEMES.map(([value, words]) => h('option', { value }, words)));
theme.value = localStorage.getItem('outlast.theme') ?? '';
const all = h('div', { class: 'bar' });
const more = h('details', { class: 'more' }, h('summary', {}, 'More'),
  h('div', { class: 'menu' }, MORE.map(([path]) => links.get(path)), all, h('p', {}, h('label', { for: 'theme' }, 'Colours '), theme),
    h('button', { class: 'quiet', onclick: showKeys }, 'Keys'), out));
let shown = null;
let told = 0;
let held;

function paint(name) {
  if (name) document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
  localStorage.setItem('outlast.theme', name);
}

/** Pauses everything, or lets it go on. The id stays until the daemon has answered, so a second press counts once. */
function switchAll() {
  const said = h('span', { role: 'status' });
  let id = newId();
  const give = async (verb) => {
    try {
      const answer = await post(`/api/daemon/${verb}`, { id });
      id = newId();
      held = answer.held_since ?? null;
      said.textContent = '';
    } catch (error) {
      said.textContent = error.message;
    }
    draw();
  };
  const draw = () => {
    const sure = h('span', { hidden: true }, h('button', { class: 'danger', onclick: () => give('pause') }, 'Yes, pause everything'));
    fill(all, held
      ? [h('span', {}, 'Everything is paused. '), h('button', { onclick: () => give('resume') }, 'Resume all')]
      : [h('button', { onclick: () => { sure.hidden = false; } }, 'Pause all\u2026'), sure], said);
    around();
  };
  more.addEventListener('toggle', async () => {
    if (!more.open) return;
    try {
      held = (await get('/api/daemon')).held_since ?? null;
    } catch {
      held = null;
    }
    draw();
  });
}

links.get('/needs-you')?.append(badge);
document.body.append(
  h('a', { class: 'skip', href: '#main' }, 'Skip to the content'),
  h('header', {}, h('strong', {}, 'outlast'), h('nav', { 'aria-label': 'Pages' }, PAGES.map(([path]) => links.get(path))), status, more),
  banner,
  news,
  main,
);

addEventListener('click', (event) => {
  const link = event.target instanceof Element && event.target.closest('a[href^="/"]');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  go(link.getAttribute('href'));
});
addEventListener('popstate', show);
addEventListener('outlast-no-session', async () => {
  live.stop();
  if (!(await named())) return;
  live.restart();
  show();
});

export function go(path) {
  history.pushState(null, '', path);
  show();
  main.focus({ preventScroll: true });
  scrollTo(0, 0);
}

function show() {
  if (!hasSession()) {
    welcome();
    return;
  }
  shown?.close?.();
  shown = null;
  keys({});
  more.open = false;
  let { pathname } = location;
  if (pathname === '/') {
    const waits = live.state.counts.needs_you > 0;
    if (live.state.status === 'loading') {
      fill(main, h('p', { class: 'dim' }, 'Asking the daemon\u2026'));
      return;
    }
    pathname = waits && innerWidth < 720 ? '/needs-you' : '/runs';
    history.replaceState(null, '', pathname);
  }
  for (const [path, link] of links) {
    if (pathname === path || pathname.startsWith(`${path}/`)) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  const one = /^\/runs\/([A-Za-z0-9_-]+)$/.exec(pathname);
  if (!one) live.follow(null);
  if (one) shown = run(main, one[1]);
  else if (pathname === '/needs-you') shown = needsYou(main);
  else if (pathname === '/report') shown = report(main);
  else if (pathname === '/runs') shown = runs(main, go);
  else if (LATER[pathname]) later(pathname);
  else fill(main, h('p', {}, 'There is nothing at this address.'));
}

async function later(path) {
  fill(main, h('p', { class: 'dim' }, 'Loading\u2026'));
  const page = await LATER[path]();
  if (location.pathname === path) shown = page.page(main, go);
}

function around() {
  const { state } = live;
  const waiting = state.counts.needs_you;
  if (state.status === 'live' && waiting !== told) {
    if (waiting > told) news.textContent = waiting === 1 ? '1 run needs you' : `${waiting} runs need you`;
    told = waiting;
  }
  badge.hidden = waiting === 0;
  badge.textContent = waiting > 99 ? '99+' : String(waiting);
  document.title = waiting > 0 ? `(${waiting}) outlast` : 'outlast';
  const isGone = state.status === 'gone';
  document.body.classList.toggle('gone', isGone);
  status.textContent = { loading: '\u25cb asking', live: '\u25cf live', gone: '\u25cb not live' }[state.status];
  if (isGone) {
    fill(banner, 'The daemon does not answer, since ', since(state.goneSince, '', ' ago'), '. What you see is from then. ',
      h('span', { class: 'dim' }, plain(state.why), state.hint ? ` (${plain(state.hint)})` : ''));
  } else if (held) fill(banner, 'Everything is paused, since ', since(held, '', ' ago'), '.');
  else fill(banner);
}

async function signOut() {
  live.stop();
  try {
    await leave();
  } catch {
    // The server may be gone, and its sessions with it.
    localStorage.clear();
  }
  welcome();
}

function welcome(problem) {
  shown?.close?.();
  shown = null;
  more.hidden = true;
  status.textContent = '';
  fill(banner);
  document.body.classList.remove('gone');
  const field = h('input', { id: 'link', autocomplete: 'off', spellcheck: 'false' });
  const open = (event) => {
    event.preventDefault();
    begin((field.value.split('#k=').pop() ?? '').trim());
  };
  fill(main, h('section', { class: 'card' },
    h('h1', {}, 'This browser has no session'),
    problem && h('p', { class: 'problem', role: 'alert' }, plain(problem)),
    h('p', {}, 'In a terminal of this machine, run ', h('code', {}, 'outlast web url'), ' and open the link that it prints. It works once, within two minutes.'),
    h('form', { onsubmit: open }, h('label', { for: 'link' }, 'Or paste it here'), field, h('button', {}, 'Open'))));
}

async function begin(code) {
  if (code) {
    try {
      await enter(code);
    } catch (error) {
      welcome(error.hint ? `${error.message}; ${error.hint}` : error.message);
      return;
    }
  }
  if (!hasSession() && !(await named())) return;
  more.hidden = false;
  live.start();
  show();
}

/** A page behind a proxy that names people needs no link. */
async function named() {
  try {
    if (await enterNamed()) return true;
    welcome();
  } catch (error) {
    welcome(error.hint ? `${error.message}; ${error.hint}` : error.message);
  }
  return false;
}

let soon = null;
live.listen((change) => {
  if (change.all) around();
  else soon ??= setTimeout(() => { soon = null; around(); }, 200);
  if (change.all && location.pathname === '/') show();
});
setInterval(() => { if (!document.hidden) tick(); }, 1000);
addEventListener('click', (event) => { if (more.open && event.target instanceof Element && !more.contains(event.target)) more.open = false; });
switchAll();
beginKeys(go);

const code = /^#k=([0-9a-f]+)$/.exec(location.hash)?.[1];
if (code) history.replaceState(null, '', location.pathname + location.search);
begin(code);
