/** The list of sessions: find, open, rename, delete. */

import * as api from '../core/api.js';
import { button, empty, failure, loading, menu, titleField } from '../core/bits.js';
import { h } from '../core/dom.js';
import { stateTag } from '../core/icons.js';
import { changed } from '../core/loop.js';
import { pref } from '../core/prefs.js';
import { momentAddress } from '../core/route.js';
import { count, excerpt, money, seen, when } from '../core/words.js';
import { attempt } from '../session/actions.js';

const PAGE = 100;
const RECENT = 5;
const WAIT_MS = 250;
const state = { sessions: [], total: 0, usage: null, isLoaded: false, problem: '', query: '', found: null, asking: null, renaming: null, isAll: false };
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

/** Return the section of sessions: the recent ones, all on request, or passages that were found. */
export function recentSessions() {
  const { isAll, total, sessions, isLoaded } = state;
  const showAll = () => {
    state.isAll = true;
    changed();
  };
  return h('section', { class: 'recent', 'aria-label': 'Sessions' },
    h('div', { class: 'row section-title' }, h('h2', {}, isAll ? 'All sessions' : 'Recent sessions'), total > RECENT && !isAll ? button(`All ${total}`, showAll, { kind: 'link' }) : null,
      total ? h('input', { type: 'search', class: 'end find-field', placeholder: 'Find in all conversations', 'aria-label': 'Find in all conversations', value: state.query, oninput: search }) : null),
    state.problem ? failure('The list cannot be read.', `${state.problem} You can ask all the same.`, button('Try again', readSessions)) : null,
    !isLoaded ? loading(3) : null,
    isLoaded && !sessions.length && !state.problem ? h('p', { class: 'muted' }, 'Your sessions will be listed here.') : null,
    state.found ? passages() : list(isAll ? sessions : sessions.slice(0, RECENT)),
    usage());
}

function usage() {
  const { usage: spent } = state;
  if (!spent || !(spent.spent_tokens || spent.quota_cost || spent.quota_tokens)) return null;
  const cost = spent.quota_cost ? `${money(spent.spent_cost)} of ${money(spent.quota_cost)}` : money(spent.spent_cost);
  const tokens = spent.quota_tokens ? `${spent.spent_tokens.toLocaleString('en-US')} of ${spent.quota_tokens.toLocaleString('en-US')} tokens` : `${spent.spent_tokens.toLocaleString('en-US')} tokens`;
  return h('p', { class: 'muted usage' }, `Used: ${cost}, ${tokens}.`);
}

function list(shown) {
  return [
    h('ul', { class: 'session-list' }, shown.map(row)),
    state.isAll && shown.length < state.total ? button(`Show more of ${state.total}`, more) : null,
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
  const { session_id: id } = item;
  if (state.renaming === id) return h('li', { key: id }, renameForm(item));
  const set = (values) => () => {
    Object.assign(state, values);
    changed();
  };
  const branch = pref(`at.${id}`, '');
  return h('li', { key: id, class: `session-row${isBroken ? ' broken' : ''}` },
    smallTree(item.branches),
    isBroken ? h('span', { class: 'session-title' }, title) : h('a', { class: 'session-title', href: branch ? momentAddress(id, branch) : `#/s/${encodeURIComponent(id)}` }, title),
    isBroken || item.activity === 'idle' ? null : stateTag(item.activity),
    isBroken ? h('span', { class: 'problem' }, stateTag('failed', item.state), seen(item.problem) || 'It is open in another program.') : null,
    state.asking === id
      ? h('span', { class: 'row end' }, h('span', {}, 'Delete it with its files?'), button('Delete', () => remove(item), { kind: 'small danger' }), button('Keep', set({ asking: null }), { kind: 'small' }))
      : [h('span', { class: 'muted facts' }, h('span', {}, count(item.branches, 'branch', 'branches')), h('span', {}, count(item.rounds, 'round')), h('span', {}, when(item.changed_at))),
        menu('more', `More on ${title}`, [['Rename', set({ renaming: id })], ['Delete', set({ asking: id })]], isBroken)]);
}

/** A drawing of the number of branches, which stands beside it in words. */
function smallTree(branches) {
  const forks = Math.min(3, Math.max(0, branches - 1));
  const top = (forks ? (1 + 5 * forks) / 2 : 0) - 8; // the drawing stands in the middle
  return h('svg', { class: 'small-tree', width: 64, height: 24, viewBox: `0 ${top} 64 24`, 'aria-hidden': 'true' },
    h('path', { class: 'c0', d: `M2 4H${forks ? 60 : 30}` }), h('circle', { class: 'c0 full', cx: forks ? 60 : 30, cy: 4, r: 2 }),
    Array.from({ length: forks }, (_, at) => [h('path', { class: `c${at + 1}`, d: `M${10 + at * 10} 4l${5 + at * 4} ${6 + at * 5}H${40 + at * 8}` }), h('circle', { class: `c${at + 1} full`, cx: 40 + at * 8, cy: 10 + at * 5, r: 2 })]));
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
  return h('ul', { class: 'session-list' }, state.found.map((one, at) => h('li', { key: at, class: 'passage' },
    h('a', { href: momentAddress(one.session_id, one.branch || 'main', one.number) }, seen(one.title) || 'New session'), h('span', { class: 'muted' }, one.branch_title === 'main' ? '' : seen(one.branch_title), one.number ? ` round ${one.number}` : ''),
    h('p', {}, seen(excerpt(one.text, state.query, 240))))));
}
