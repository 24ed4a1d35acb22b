/** The list of sessions: find, open, rename, delete, begin. */

import * as api from '../core/api.js';
import { button, empty, failure, loading, titleField } from '../core/bits.js';
import { h } from '../core/dom.js';
import { stateTag } from '../core/icons.js';
import { changed } from '../core/loop.js';
import { go, momentAddress } from '../core/route.js';
import { count, firstLine, money, seen, when } from '../core/words.js';
import { attempt } from '../session/actions.js';

const PAGE = 100;
const WAIT_MS = 250;
const state = { sessions: [], total: 0, usage: null, isLoaded: false, problem: '', query: '', found: null, asking: null, renaming: null };
let waiting = null;
let reading = null;
let next = null; // the read after it, which all share that ask meanwhile

/** Read the first page of the list again; return the number of its last change, undefined if it cannot be read. */
export function readSessions() {
  if (reading) return (next ??= reading.then(readSessions));
  next = null;
  reading = readList().finally(() => {
    reading = null;
  });
  return reading;
}

async function readList() {
  let last;
  try {
    const limit = Math.max(PAGE, state.sessions.length);
    const [list, usage] = await Promise.all([api.get('sessions', { limit: Math.min(limit, 500) }), api.get('usage')]);
    last = list.last_change;
    Object.assign(state, { sessions: list.sessions, total: list.total, usage, isLoaded: true, problem: '' });
  } catch (error) {
    Object.assign(state, { problem: error.message, isLoaded: true });
  }
  changed();
  return last;
}

/** Make a session and open it. */
function newSession() {
  return attempt(async () => {
    const made = await api.post('sessions', {});
    go(momentAddress(made.session_id, 'main'));
  });
}

/** Return the screen. */
export function sessionsScreen() {
  return h('main', { class: 'sessions', tabindex: -1 },
    h('div', { class: 'column wide-column' },
      h('div', { class: 'row list-head' }, h('h1', {}, 'Sessions'), h('span', { class: 'muted' }, state.isLoaded ? count(state.total, 'session') : ''), button('New session', newSession, { kind: 'primary end' })),
      h('input', { type: 'search', class: 'big-field', placeholder: 'Find in all conversations', 'aria-label': 'Find in all conversations', value: state.query, oninput: search }),
      state.problem ? failure('The list cannot be read', state.problem, button('Try again', readSessions)) : null,
      !state.isLoaded ? loading(5) : null,
      state.found ? passages() : list(),
      usage()));
}

function usage() {
  const { usage: spent } = state;
  if (!spent || !(spent.spent_tokens || spent.quota_cost || spent.quota_tokens)) return null;
  const cost = spent.quota_cost ? `${money(spent.spent_cost)} of ${money(spent.quota_cost)}` : money(spent.spent_cost);
  const tokens = spent.quota_tokens ? `${spent.spent_tokens.toLocaleString('en-US')} of ${spent.quota_tokens.toLocaleString('en-US')} tokens` : `${spent.spent_tokens.toLocaleString('en-US')} tokens`;
  return h('p', { class: 'muted usage' }, `Used: ${cost}, ${tokens}.`);
}

function list() {
  if (state.isLoaded && !state.sessions.length && !state.problem) {
    return empty('There is no session yet.', h('p', { class: 'muted' }, 'A session is one conversation with its data. Begin one, and drop a file on it.'));
  }
  return [
    h('ul', { class: 'session-list' }, state.sessions.map(row)),
    state.sessions.length < state.total ? button(`Show more of ${state.total}`, more) : null,
  ];
}

async function more() {
  await attempt(async () => {
    const next = await api.get('sessions', { first: state.sessions.length, limit: PAGE });
    state.sessions = [...state.sessions, ...next.sessions];
  });
}

function row(item) {
  const isBroken = ['damaged', 'locked'].includes(item.state);
  const title = seen(item.title) || 'New session';
  if (state.renaming === item.session_id) return h('li', { key: item.session_id }, renameForm(item));
  const setAsking = (id) => () => {
    state.asking = id;
    changed();
  };
  const rename = () => {
    state.renaming = item.session_id;
    changed();
  };
  return h('li', { key: item.session_id, class: `session-row${isBroken ? ' broken' : ''}` },
    isBroken ? h('span', { class: 'session-title' }, title) : h('a', { class: 'session-title', href: `#/s/${encodeURIComponent(item.session_id)}` }, title),
    isBroken || item.activity === 'idle' ? null : stateTag(item.activity),
    h('span', { class: 'muted' }, `${count(item.rounds, 'round')} on main, ${item.branches > 1 ? `${count(item.branches, 'branch', 'branches')}, ` : ''}${when(item.changed_at)}`),
    isBroken ? h('span', { class: 'problem' }, stateTag('failed', item.state), seen(item.problem) || 'It is open in another program.') : null,
    h('span', { class: 'row end' }, state.asking === item.session_id
      ? [h('span', {}, 'Delete it with its files?'), button('Delete', () => remove(item), { kind: 'small danger' }), button('Keep', setAsking(null), { kind: 'small' })]
      : [button('Rename', rename, { kind: 'quiet', disabled: isBroken, label: `Rename ${title}` }), button('Delete', setAsking(item.session_id), { kind: 'quiet delete', disabled: isBroken, label: `Delete ${title}` })]));
}

function renameForm(item) {
  const end = (event) => {
    event.preventDefault();
    const title = event.target.elements.title.value.trim();
    state.renaming = null;
    if (!title) return changed();
    return attempt(async () => {
      await api.change(`sessions/${api.path(item.session_id)}`, { title });
      item.title = title;
    });
  };
  return h('form', { class: 'row', onsubmit: end }, titleField('Title', item.title), h('button', { type: 'submit', class: 'button small primary' }, 'Save'),
    button('Cancel', () => { state.renaming = null; changed(); }, { kind: 'small' }));
}

async function remove(item) {
  state.asking = null;
  await attempt(async () => {
    await api.remove(`sessions/${api.path(item.session_id)}`);
    await readSessions();
  });
}

function search(event) {
  state.query = event.target.value;
  clearTimeout(waiting);
  waiting = setTimeout(find, WAIT_MS);
}

async function find() {
  const wanted = state.query.trim();
  if (!wanted) {
    state.found = null;
    changed();
    return;
  }
  await attempt(async () => {
    const { passages: found } = await api.get('find', { q: wanted });
    if (state.query.trim() === wanted) state.found = found;
  });
}

function passages() {
  if (!state.found.length) return empty('No conversation has these words.');
  const titles = new Map(state.sessions.map((item) => [item.session_id, item.title]));
  return h('ul', { class: 'session-list' }, state.found.map((one, at) => h('li', { key: at, class: 'passage' },
    h('a', { href: momentAddress(one.session_id, one.branch || 'main', one.number ?? one.round ?? null) }, seen(titles.get(one.session_id) ?? one.session_id)), h('span', { class: 'muted' }, seen(one.branch), one.number ? `, round ${one.number}` : ''),
    h('p', {}, seen(firstLine(one.text, 240))))));
}
