/** Variables of a moment, with their types, values and sizes. */

import { button } from '../core/bits.js';
import { h } from '../core/dom.js';
import { icon } from '../core/icons.js';
import { changed } from '../core/loop.js';
import { bytes, seen } from '../core/words.js';
import { later, shown, withModule } from '../later.js';
import { withMoment } from './moment.js';

/** A data frame as reports of cells show it: its type, and its numbers of rows and columns. */
const FRAME = /^(\w+) (\d+)x(\d+)/;

let opened = '';

/** Return the tab of variables. */
export function variablesTab(session, moment) {
  return withMoment(session, moment, (data) => [list(session, moment, data), session.artifacts.size ? shown(later.figures, (found) => found.latestFigure(session, moment)) : null], 'Variables will appear here.');
}

function list(session, moment, data) {
  const sorted = [...data.variables].sort((a, b) => b.is_changed - a.is_changed || a.name.localeCompare(b.name));
  const total = sorted.reduce((sum, one) => sum + (one.size ?? 0), 0);
  return h('section', { class: 'data-section' },
    h('div', { class: 'section-head' }, h('h3', {}, `Variables at round ${data.number}`), h('span', { class: 'end' }, String(sorted.length))),
    sorted.length ? h('ul', { class: 'variables' }, sorted.map((one) => row(session, moment, one, hasTable(session, moment, data.state, one)))) : h('p', { class: 'muted' }, 'None yet.'),
    sorted.some((one) => one.is_changed) ? h('p', { class: 'muted caption' }, h('span', { class: 'changed-dot' }), 'changed in this round', total ? `, ${bytes(total)} in all` : '') : null,
    data.state === 'none' && sorted.length && moment.isPast ? h('p', { class: 'warning' }, icon('warn'), 'The state of this round is no longer kept. A fork runs its cells again: /rebuild in the terminal, or ask for it.') : null);
}

/** Return whether the table of a variable can be shown: now, or as the state that is kept has it. */
function hasTable(session, moment, state, one) {
  if (session.isReadOnly || !FRAME.test(one.text)) return false;
  return !moment.isPast || state === 'live' || (state === 'stored' && !one.lost);
}

function row(session, moment, one, isTable) {
  const isOpen = opened === one.name;
  const toggle = () => {
    opened = isOpen ? '' : one.name;
    changed();
  };
  return h('li', { key: one.name },
    h('button', { type: 'button', class: 'variable', 'aria-expanded': String(isOpen), onclick: toggle },
      h('span', { class: one.is_changed ? 'changed-dot' : 'no-dot', title: one.is_changed ? 'changed in this round' : null }),
      h('code', {}, seen(one.name)), h('span', { class: 'muted end shrink' }, shortText(one.text))),
    isOpen ? h('div', { class: 'variable-more' },
      h('pre', { tabindex: 0, role: 'group', 'aria-label': `Value of ${seen(one.name)}` }, seen(one.text)),
      h('p', { class: 'muted caption' }, [one.type, bytes(one.size)].filter(Boolean).join(', ')),
      isTable ? button('Show the table', () => withModule(later.frame, (found) => found.openFrame(session, moment, one.name)), { kind: 'small' }) : null,
      one.lost ? h('p', { class: 'warning' }, icon('warn'), `Could not be stored: ${seen(one.lost)}`) : null) : null);
}

function shortText(text) {
  const frame = FRAME.exec(text);
  if (frame) return `${frame[1] === 'DataFrame' ? 'table' : frame[1]} ${Number(frame[2]).toLocaleString('en-US')} × ${frame[3]}`;
  return seen(text.split('\n')[0].slice(0, 60));
}
