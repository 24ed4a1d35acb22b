/** The settings of the project that can be changed here: the server has none of them that carries a risk. */

import * as api from '../core/api.js';
import { button, dialog, failure, loading, withCode } from '../core/bits.js';
import { h } from '../core/dom.js';
import { changed } from '../core/loop.js';
import { seen } from '../core/words.js';
import { showDialog } from '../state.js';

const state = { settings: null, problem: '', typed: {}, refused: {}, wanted: '' };

const UNSET = '-';

/** Open the dialog, and read the settings. */
export async function openSettings() {
  Object.assign(state, { settings: null, problem: '', typed: {}, refused: {} });
  showDialog(settingsDialog);
  try {
    state.settings = (await api.get('settings')).settings;
  } catch (error) {
    state.problem = error.message;
  }
  changed();
}

function settingsDialog() {
  const close = () => showDialog(null);
  const oninput = (event) => {
    state.wanted = event.target.value;
    changed();
  };
  const words = state.wanted.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = (state.settings ?? []).filter((one) => words.every((word) => `${one.name} ${one.doc}`.toLowerCase().includes(word)));
  return dialog('Settings of the project', 'project', close,
    h('div', { class: 'row' }, h('h2', {}, 'Settings of the project'), button('Close', close, { kind: 'quiet end' })),
    h('p', { class: 'muted' }, 'They are kept in the file of the project, and are in force from the next start of the server. A field that is empty leaves the default.'),
    state.problem ? failure('The settings cannot be read', state.problem) : null,
    h('input', { type: 'search', 'aria-label': 'Find a setting', placeholder: 'Find a setting', value: state.wanted, oninput }),
    state.settings ? h('ul', { class: 'settings' }, shown.map(row)) : state.problem ? null : loading(5),
    state.settings && !shown.length ? h('p', { class: 'muted' }, 'No setting has these words.') : null);
}

function row(one) {
  return h('li', { key: one.name }, h('label', { class: 'field' }, h('span', {}, h('b', {}, one.name), ' ', withCode(one.doc)), control(one)), note(one),
    state.refused[one.name] ? h('p', { class: 'failed-text', role: 'alert' }, seen(state.refused[one.name])) : null);
}

function note(one) {
  if (['environment', 'application'].includes(one.origin)) return h('p', { class: 'caption muted' }, `The ${one.origin} sets it to ${seen(one.value)}.`);
  const isLater = one.stored === null ? one.origin === 'file' : one.stored !== one.value;
  return isLater ? h('p', { class: 'caption muted' }, `In force from the next start; now ${seen(one.value ?? 'unset')}.`) : null;
}

function control(one) {
  const oninput = (event) => {
    state.typed[one.name] = event.target.value; // the page may be drawn before it is kept
  };
  const onchange = (event) => keep(one, event.target.value);
  const unset = one.default === null || one.default === '' ? 'unset' : `default: ${one.default}`;
  const value = state.typed[one.name] ?? (one.stored === null ? '' : String(one.stored));
  const choices = one.type === 'bool' ? ['true', 'false'] : one.choices;
  // The value of a new list is set once its choices are there.
  const mount = (element) => {
    element.value = value || UNSET;
  };
  if (choices.length) return h('select', { 'aria-label': one.name, value: value || UNSET, oninput, onchange, mount }, [UNSET, ...choices].map((choice) => h('option', { key: choice, value: choice }, choice === UNSET ? unset : choice)));
  return h('input', { type: 'text', inputmode: one.type === 'str' ? 'text' : 'decimal', 'aria-label': one.name, value, placeholder: unset, oninput, onchange });
}

async function keep(one, text) {
  delete state.refused[one.name];
  try {
    state.settings = (await api.change('settings', { values: { [one.name]: valueOf(one, text.trim()) } })).settings;
    if (state.typed[one.name] === text) delete state.typed[one.name];
  } catch (error) {
    state.refused[one.name] = error.message;
  }
  changed();
}

/** The server says what does not fit: what is no number goes as it is. */
function valueOf(one, text) {
  if (text === '' || text === UNSET) return null;
  if (one.type === 'bool') return text === 'true';
  const isNumber = ['int', 'float'].includes(one.type) && Number.isFinite(Number(text));
  return isNumber ? Number(text) : text;
}
