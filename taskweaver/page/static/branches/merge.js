/** The merge of a branch's memory into another one, with each conflict to be chosen. */

import * as api from '../core/api.js';
import { isAble } from '../core/abilities.js';
import { button } from '../core/bits.js';
import { h } from '../core/dom.js';
import { afterDraw, changed } from '../core/loop.js';
import { count, seen } from '../core/words.js';
import { attempt } from '../session/actions.js';
import { titled } from '../session/paths.js';
import { notify } from '../state.js';

const state = { key: '', view: null, problem: '', choices: {}, isBusy: false };

/** Return the panel that merges the second branch into the first. */
export function mergePanel(session, [into, from]) {
  const key = [session.id, into, from, session.index.length].join('/');
  const look = () => {
    Object.assign(state, { key, view: null, problem: '', choices: {} });
    load(session, into, from, key);
    changed();
  };
  const isOpen = state.key === key;
  const names = [titled(session, into), titled(session, from)];
  return h('section', { class: 'data-section merge' }, h('h3', {}, `Merge ${names[1]} into ${names[0]}`),
    h('p', { class: 'muted' }, `Changes the memory of ${names[0]} only. Conversations, variables and files of both stay as they are.`),
    isOpen ? content(session, into, from) : !isAble('get', 'sessions/{session_id}/branches/{branch}/merge') ? h('p', { class: 'muted' }, 'In the terminal: /merge.') : button('Merge...', look, { sign: 'merge' }));
}

async function load(session, into, from, key) {
  try {
    const view = await api.get(`${session.where}/branches/${api.path(into)}/merge`, { source: from });
    if (state.key === key) state.view = view;
    afterDraw(() => document.querySelector('.merge')?.scrollIntoView({ block: 'nearest' }));
  } catch (error) {
    if (state.key === key) state.problem = error.message;
  }
  changed();
}

function content(session, into, from) {
  const { view, problem } = state;
  if (problem) return h('p', { class: 'failed-text' }, problem);
  if (!view) return h('p', { class: 'muted' }, 'Looking at both.');
  const open = view.conflicts.filter((one) => !state.choices[one.key]);
  const isNothing = !Object.keys(view.core).length && !view.records.length && !view.conflicts.length;
  const close = () => {
    state.key = '';
    changed();
  };
  return [
    h('p', {}, isNothing ? 'There is nothing to take over.' : `${count(Object.keys(view.core).length, 'key')} and ${count(view.records.length, 'record')} are taken over.`),
    view.conflicts.length ? h('p', {}, `Both changed ${count(view.conflicts.length, 'key')}; choose each:`) : null,
    view.conflicts.map((one) => conflict(one, titled(session, into), titled(session, from))),
    h('div', { class: 'row merge-buttons' }, isNothing ? null : button(open.length ? `Merge: choose ${open.length} more` : 'Merge', () => merge(session, into, from), { kind: 'primary', sign: 'merge', disabled: open.length > 0 || state.isBusy }), button(isNothing ? 'Close' : 'Cancel', close)),
  ];
}

function conflict(one, into, from) {
  const option = (value, name, text) => h('label', { class: 'choice' },
    h('input', { type: 'radio', name: `conflict-${one.key}`, value, checked: state.choices[one.key] === value, onchange: () => { state.choices[one.key] = value; changed(); } }), h('span', {}, h('b', {}, `${name}: `), seen(text)));
  return h('fieldset', { key: one.key, class: 'conflict' }, h('legend', {}, seen(one.key)), option('ours', into, one.ours), option('theirs', from, one.theirs));
}

async function merge(session, into, from) {
  state.isBusy = true;
  changed();
  await attempt(async () => {
    const done = await api.post(`${session.where}/branches/${api.path(into)}/merge`, { source: from, policy: 'manual', choices: state.choices });
    notify(done.is_applied ? `Merged: ${count(done.taken.length, 'key')} of ${titled(session, from)} taken over by ${titled(session, into)}.` : 'Not merged: something changed meanwhile. Look again.');
    state.key = '';
    await session.reload();
  });
  state.isBusy = false;
  changed();
}
