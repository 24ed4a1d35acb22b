/** Memory of a branch: search, remember, edit, forget, and where a fact came from. */

import * as api from '../core/api.js';
import { button } from '../core/bits.js';
import { h } from '../core/dom.js';
import { changed } from '../core/loop.js';
import { seen } from '../core/words.js';
import { attempt } from '../session/actions.js';
import { notify } from '../state.js';

const WAIT_MS = 200;
const state = { key: '', query: '', view: null, problem: '', fresh: '', editing: null, text: '' };
let waiting = null;

/** Return the tab of memory; of a past moment it is read only. */
export function memoryTab(session, moment) {
  const past = moment.isPast ? moment.number : '';
  const key = [session.id, moment.branch, past, session.index.length, state.query].join('/');
  if (state.key !== key) {
    state.key = key;
    load(session, moment, key);
  }
  const view = state.view ?? { facts: [], core: {} };
  const core = Object.entries(view.core).filter(([, value]) => value);
  return [
    h('section', { class: 'data-section' },
      h('div', { class: 'section-head' }, h('h3', {}, moment.isPast ? `Memory at round ${moment.number}` : 'Memory')),
      moment.isPast ? null : h('input', { type: 'search', placeholder: 'Find in memory', 'aria-label': 'Find in memory', value: state.query, oninput: search }),
      moment.isPast ? null : rememberForm(session, moment)),
    state.problem ? h('p', { class: 'failed-text pad' }, state.problem) : null,
    h('section', { class: 'data-section' },
      h('div', { class: 'section-head' }, h('h3', {}, 'Facts'), h('span', { class: 'end' }, String(view.facts.length))),
      view.facts.length || !state.view ? null : h('p', { class: 'muted' }, state.query ? 'No fact has these words.' : 'Nothing is kept yet. Say "remember that ..." in a question, or write it above.'),
      h('ul', { class: 'facts' }, view.facts.map((fact) => factRow(session, moment, fact)))),
    core.length ? h('section', { class: 'data-section' }, h('div', { class: 'section-head' }, h('h3', {}, 'Core memory of this branch')),
      h('dl', { class: 'core' }, core.map(([name, value]) => [h('dt', {}, seen(name)), h('dd', {}, seen(value))]))) : null,
  ];
}

function search(event) {
  state.query = event.target.value;
  clearTimeout(waiting);
  waiting = setTimeout(changed, WAIT_MS);
}

async function load(session, moment, key) {
  try {
    const view = moment.isPast
      ? (await api.get(`${session.where}/branches/${api.path(moment.branch)}/rounds/${moment.number}`)).memory
      : await api.get(`${session.where}/memory`, { branch: moment.branch, q: state.query });
    if (state.key === key) Object.assign(state, { view: view ?? { facts: [], core: {} }, problem: '' });
  } catch (error) {
    if (state.key === key) state.problem = error.message;
  }
  changed();
}

function rememberForm(session, moment) {
  const submit = (event) => {
    event.preventDefault();
    change(() => api.post(`${session.where}/memory`, { text: state.fresh.trim() }, { branch: moment.branch }), () => { state.fresh = ''; });
  };
  const oninput = (event) => {
    state.fresh = event.target.value;
    changed();
  };
  return h('form', { class: 'row remember', onsubmit: submit }, h('input', { type: 'text', placeholder: 'For all sessions', 'aria-label': 'A fact to remember', maxlength: 1000, value: state.fresh, oninput }),
    h('button', { type: 'submit', class: 'button small', disabled: !state.fresh.trim() }, 'Remember'));
}

async function change(work, then = () => {}) {
  await attempt(async () => {
    const { outcome } = await work();
    then();
    notify(outcome);
    state.key = '';
  });
}

function factRow(session, moment, fact) {
  const where = `${session.where}/memory/${api.path(fact.fact_id)}`;
  const query = { branch: moment.branch };
  if (state.editing === fact.fact_id) return h('li', { key: fact.fact_id }, editor(where, query, fact));
  const edit = () => {
    Object.assign(state, { editing: fact.fact_id, text: fact.text });
    changed();
  };
  return h('li', { key: fact.fact_id, class: 'fact' },
    h('p', {}, seen(fact.text)),
    h('p', { class: 'muted caption' }, fact.state === 'kept' ? null : h('b', {}, fact.until ? `replaced on ${fact.until}; ` : `${fact.state}, `), `${fact.author === 'user' ? 'by you' : `by ${seen(fact.author)}`}, ${fact.day}`, fact.session_id ? [', ', h('a', { href: `#/s/${encodeURIComponent(fact.session_id)}` }, fact.session_id === session.id ? 'this session' : 'its session')] : null, fact.said ? `, after "${seen(fact.said)}"` : null),
    moment.isPast || fact.until ? null : h('div', { class: 'row' }, fact.state === 'kept' ? null : button('Use in all sessions', () => change(() => api.post(where, undefined, query)), { kind: 'small' }), button('Edit', edit, { kind: 'small' }), button('Forget', () => change(() => api.remove(where, query)), { kind: 'small' })));
}

function editor(where, query, fact) {
  const close = () => {
    state.editing = null;
    changed();
  };
  const save = () => change(() => api.put(where, { text: state.text.trim() }, query), () => { state.editing = null; });
  return h('div', { class: 'fact-editor' },
    h('textarea', { rows: 3, 'aria-label': `Text of ${fact.fact_id}`, maxlength: 1000, value: state.text, oninput: (event) => { state.text = event.target.value; }, mount: (element) => element.focus() }),
    h('div', { class: 'row' }, button('Save', save, { kind: 'small primary' }), button('Cancel', close, { kind: 'small' })));
}
