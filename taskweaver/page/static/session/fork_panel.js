/** The panel of a fork: in the inspector's place, so that nothing is covered. */

import { button, field } from '../core/bits.js';
import { h } from '../core/dom.js';
import { icon } from '../core/icons.js';
import { changed } from '../core/loop.js';
import { bytes, count, seen } from '../core/words.js';
import { ui } from '../state.js';
import { makeFork } from './actions.js';

/** Return the panel of the fork that is prepared. */
export function forkPanel(session) {
  const fork = ui.fork;
  const set = (name) => (event) => {
    fork[name] = event.target.value;
    changed();
  };
  const close = () => {
    ui.fork = null;
    changed();
  };
  const onkeydown = (event) => {
    if (event.key === 'Escape') {
      event.stopPropagation();
      close();
    }
    if (event.key === 'Enter' && !event.shiftKey && event.target.matches('input, textarea') && !event.isComposing) {
      event.preventDefault();
      makeFork(session, fork);
    }
  };
  const isReady = fork.name.trim() && !fork.isBusy;
  return h('form', { class: 'fork-panel card', 'aria-label': `Fork ${seen(fork.branch)} at round ${fork.number}`, onkeydown, onsubmit: (event) => event.preventDefault(), key: 'fork' },
    h('h2', {}, `Fork ${seen(fork.branch)} at round ${fork.number}`),
    h('p', { class: 'muted' }, `A new branch starts with everything round ${fork.number} had. ${seen(fork.branch)} is not touched.`),
    field('Name', h('input', { type: 'text', value: fork.name, maxlength: 64, oninput: set('name'), mount: (element) => { element.focus(); element.select(); } })),
    field('First question (optional)', h('textarea', { rows: 2, value: fork.question, oninput: set('question') })),
    carried(fork),
    fork.problem ? h('p', { class: 'failed-text', role: 'alert' }, seen(fork.problem)) : null,
    h('div', { class: 'row end' }, button('Cancel', close), button(fork.isBusy ? 'Forking' : fork.question.trim() ? 'Fork and ask' : 'Fork', () => makeFork(session, fork), { kind: 'primary', disabled: !isReady, key: '↵' })));
}

const STATES = { live: 'shared until changed', stored: 'read from disk', none: 'not kept', empty: 'none' };

function carried({ preview, problem }) {
  // As high as the list that comes: the buttons below stay where they are.
  if (!preview) return problem ? null : h('div', { class: 'carried-list coming', role: 'status', 'aria-label': 'Looking at what it carries' }, [0, 1, 2].map((at) => h('span', { class: `bar w${at}` })));
  const size = preview.variables_bytes ? `, ${bytes(preview.variables_bytes)}` : '';
  const line = (isCarried, text) => h('li', { class: isCarried ? 'carried' : 'not-carried' }, icon(isCarried ? 'check' : 'warn'), h('span', {}, text));
  return h('ul', { class: 'carried-list', 'aria-label': 'What the fork carries' },
    line(preview.state !== 'none' || !preview.variables, `${count(preview.variables, 'variable')}${size}, ${preview.variables ? STATES[preview.state] : 'none yet'}`),
    line(true, `${count(preview.files, 'file')}, ${bytes(preview.files_bytes)}`),
    line(true, `core memory and ${count(preview.rounds, 'round')}`),
    preview.not_carried.map((text) => line(false, seen(text))));
}
