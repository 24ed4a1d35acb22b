/** Help: the keys that work here. */

import { button, dialog } from './core/bits.js';
import { h } from './core/dom.js';
import { projectCommands } from './commands.js';
import { hasToken, keepToken } from './core/api.js';
import { showDialog, ui } from './state.js';

const EVERYWHERE = [['Ctrl K', 'find, and every command by name'], ['?', 'this help'], ['Esc', 'close, leave a past moment; twice: stop']];
const SESSION = [
  ['/', 'composer'], ['J  K', 'next, previous round'], ['[  ]', 'previous, next branch'], ['F', 'fork at the round that is shown'], ['C', 'compare with another branch'],
  ['B', 'ask both (while comparing)'], ['M', 'map of the tree'], ['T', 'branches'], ['D', 'inspector'], ['R', 'rename the session'], ['F2', 'rename the branch'], ['U', 'undo the last round'],
  ['O', 'open or fold all code'], ['G', 'next branch that asks or runs'], ['End', 'follow the answer again'], ['Y  E  N', 'in a focused question: allow, edit, deny'],
];
const COMPOSER = [['Enter', 'ask'], ['Shift Enter', 'new line'], ['Alt Enter', 'fork and ask'], ['Up', 'last question, in an empty field'], ['@', 'names of variables, files and rounds'], ['/run', 'first line: run code without a model']];
const SEARCHES = [['L', 'the tree as a list'], ['0', 'fit the tree into the window']];

/** Show the help. */
export function openHelp() {
  showDialog(helpDialog);
}

function helpDialog() {
  const isSession = ['session', 'compare'].includes(ui.place.kind);
  const close = () => showDialog(null);
  return dialog('Help', '', close,
    h('div', { class: 'row' }, h('h2', {}, 'Keys'), button('Close', close, { kind: 'quiet end' })),
    keys('Everywhere', EVERYWHERE), isSession ? keys('Session', SESSION) : null, isSession ? keys('Composer', COMPOSER) : null,
    ui.place.kind === 'searches' ? keys('Searches', SEARCHES) : null,
    h('div', { class: 'row' }, projectCommands().map(({ text, run }) => button(text, () => { close(); run(); }, { kind: 'small' })), hasToken() ? signOut() : null));
}

function keys(title, list) {
  return h('section', {}, h('h3', {}, title), h('dl', { class: 'keys' }, list.map(([key, text]) => [h('dt', {}, h('kbd', {}, key)), h('dd', {}, text)])));
}

function signOut() {
  const leave = () => {
    keepToken('');
    location.reload();
  };
  return button('Sign out of this server', leave, { kind: 'small' });
}
