/** The panel of a fork: in the inspector's place, so that nothing is covered. */

import { button, field } from '../core/bits.js';
import { h } from '../core/dom.js';
import { icon } from '../core/icons.js';
import { changed } from '../core/loop.js';
import { bytes, count, seen } from '../core/words.js';
import { ui } from '../state.js';
import { closeFork, makeFork } from './actions.js';
import { titled } from './paths.js';

/** Return the panel of the fork that is prepared. */
export function forkPanel(session) {
  const fork = ui.fork;
  const source = titled(session, fork.branch);
  const set = (name) => (event) => {
    fork[name] = event.target.value;
    changed();
  };
  const onkeydown = (event) => {
    if (event.key === 'Escape') {
      event.stopPropagation();
      closeFork();
    }
    if (event.key === 'Enter' && !event.shiftKey && event.target.matches('input, textarea') && !event.isComposing) {
      event.preventDefault();
      makeFork(session, fork);
    }
  };
  const isReady = fork.name.trim() && !fork.isBusy;
  return h('form', { class: 'fork-panel card', 'aria-label': `Fork ${source} at round ${fork.number}`, onkeydown, onsubmit: (event) => event.preventDefault(), key: 'fork' },
    h('h2', {}, `Fork ${source} at round ${fork.number}`),
    h('p', { class: 'muted' }, `A new branch starts with everything round ${fork.number} had. ${source} is not touched.`),
    field('Name', h('input', { type: 'text', value: fork.name, 'aria-invalid': fork.refused ? 'true' : null, 'aria-describedby': fork.refused ? 'refused' : null, maxlength: 64, oninput: set('name'), mount: (element) => { element.focus(); element.select(); } })),
    fork.refused ? h('p', { id: 'refused', class: 'failed-text', role: 'alert' }, seen(fork.refused)) : null,
    field('First question (optional)', h('textarea', { rows: 2, value: fork.question, oninput: set('question') })),
    carried(fork),
    fork.problem ? h('p', { class: 'failed-text', role: 'alert' }, seen(fork.problem)) : null,
    h('div', { class: 'row end' }, button('Cancel', closeFork), button(fork.isBusy ? 'Forking' : fork.question.trim() ? 'Fork and ask' : 'Fork', () => makeFork(session, fork), { kind: 'primary', disabled: !isReady, key: '↵' })));
}

const MOST_NAMES = 5;
const STATES = { live: 'shared until changed', stored: 'read from disk', none: 'not kept', empty: 'none' };

function carried({ preview, problem, number }) {
  // As high as the list that comes: the buttons below stay where they are.
  if (!preview) return problem ? null : h('div', { class: 'carried-list coming', role: 'status', 'aria-label': 'Looking at what it carries' }, [0, 1, 2].map((at) => h('span', { class: `bar w${at}` })));
  const line = (isCarried, ...content) => h('li', { class: isCarried ? 'carried' : 'not-carried' }, icon(isCarried ? 'check' : 'warn'), h('span', {}, content));
  const differ = preview.files_differ;
  return h('ul', { class: 'carried-list', 'aria-label': 'What the fork carries' },
    line(preview.state !== 'none' || !preview.variables, variablesText(preview), names(preview.carried)),
    line(true, `${count(preview.files, 'file')}, ${bytes(preview.files_bytes)}`),
    line(true, `${count(preview.rounds, 'round')}, ${memoryText(preview)}`),
    differ?.length ? line(false, `${seen(differ.slice(0, MOST_NAMES).join(', '))}${differ.length > MOST_NAMES ? ` and ${differ.length - MOST_NAMES} more` : ''} ${differ.length === 1 ? 'was' : 'were'} made or changed after round ${number}. The fork gets ${differ.length === 1 ? 'it as it is' : 'them as they are'} now.`) : null,
    preview.files && differ === null ? line(false, 'Files are copied as they are now; those of the round are not known.') : null,
    preview.not_carried.map((text) => line(false, seen(text))));
}

function memoryText({ core, facts }) {
  const parts = [core && `${count(core, 'key')} of core memory`, facts && count(facts, 'fact')];
  return parts.filter(Boolean).join(', ') || 'no memory yet';
}

function variablesText(preview) {
  const { variables, carried: kept, variables_bytes: size, state } = preview;
  if (!variables) return '0 variables, none yet';
  const number = kept.length < variables && state !== 'none' ? `${kept.length} of ${count(variables, 'variable')}` : count(variables, 'variable');
  return `${number}${size ? `, ${bytes(size)}` : ''}, ${STATES[state]}`;
}

/** The largest of the variables that are carried. */
function names(kept) {
  if (!kept.length) return null;
  const largest = [...kept].sort((a, b) => (b.size ?? 0) - (a.size ?? 0) || a.name.localeCompare(b.name));
  const shown = largest.slice(0, MOST_NAMES).map((one) => [seen(one.name), bytes(one.size)].filter(Boolean).join(' '));
  return h('span', { class: 'carried-names caption' }, shown.join(', '), kept.length > MOST_NAMES ? ` and ${kept.length - MOST_NAMES} more` : '');
}
