/** Settings: those of this browser, and those of the project that carry no risk, the usual ones by groups. */

import * as api from '../core/api.js';
import { isAble } from '../core/abilities.js';
import { button, dialog, failure, withCode } from '../core/bits.js';
import { h } from '../core/dom.js';
import { changed } from '../core/loop.js';
import { applyTheme, keepPref, pref } from '../core/prefs.js';
import { seen } from '../core/words.js';
import { chooseModel, mayChoose } from '../models/chip.js';
import { focusOn } from '../session/actions.js';
import { showDialog } from '../state.js';

const state = { settings: null, isRead: false, problem: '', typed: {}, refused: {}, wanted: '' };

const UNSET = '-';

/** The settings that people change first, with words for them; a search finds the others too. */
const GROUPS = {
  Model: {
    'llm.model': 'Name of the model', 'llm.temperature': 'Temperature', 'llm.reasoning_effort': 'Effort of reasoning', 'llm.context_window': 'Tokens that the model takes', 'llm.max_tokens': 'Longest reply', 'llm.images': 'Show it the charts',
  },
  Answers: { 'answers.check': 'Check the numbers of answers', 'code_interpreter.max_retry_count': 'Repairs of failed code', 'session.max_internal_chat_round_num': 'Steps of an answer' },
  Safety: { 'code_interpreter.require_confirmation': 'Ask before code runs', 'code_interpreter.confirmation_timeout_s': 'Wait for a yes, in seconds', 'code_interpreter.code_verification_on': 'Check code before it runs', 'llm.log_prompts': 'Log prompts' },
  Look: {},
  Limits: {
    'limits.round_tokens': 'Tokens of an answer', 'limits.session_tokens': 'Tokens of a session', 'limits.session_cost': 'Money of a session', 'limits.session_rounds': 'Rounds of a session',
    'search.steps': 'Attempts of a search', 'search.time_limit_s': 'Seconds of a search', 'search.cost_limit': 'Money of a search',
  },
};

/** Words by which the settings of this browser are found. */
const LOOK_WORDS = 'look theme system light dark mode colours colors appearance single letters are keys shortcuts';

/** Open the dialog, and read the settings of the project, which are for admins; the one that is `wanted` has the focus. */
export async function openSettings(wanted = '') {
  Object.assign(state, { problem: '', typed: {}, refused: {}, wanted });
  showDialog(settingsDialog);
  await readSettings();
  if (wanted) focusOn(`.settings-group input, .settings [aria-label="${CSS.escape(wanted)}"]`);
}

async function readSettings() {
  try {
    state.settings = (await api.get('settings')).settings; // asked even before the abilities are known
  } catch (error) {
    if (![403, 404].includes(error.status)) state.problem = error.message;
  }
  changed();
}

/** Return the settings as Find lists them, `{text, words, run}`; those of the project once they are read. */
export function settingItems() {
  if (!state.isRead && isAble('get', 'settings')) {
    state.isRead = true;
    readSettings();
  }
  const labels = Object.assign({}, ...Object.values(GROUPS));
  const own = [['Theme', LOOK_WORDS, 'theme'], ['Single letters are keys', LOOK_WORDS, 'single letters']];
  const named = (state.settings ?? []).map((one) => [labels[one.name] ?? one.name, `${one.name} ${one.doc}`, one.name]);
  return [...own, ...named].map(([text, words, wanted]) => ({ text, words, run: () => openSettings(wanted) }));
}

function settingsDialog() {
  const close = () => showDialog(null);
  const oninput = (event) => {
    state.wanted = event.target.value;
    changed();
  };
  const words = state.wanted.toLowerCase().split(/\s+/).filter(Boolean);
  return dialog('Settings', `project${state.settings ? ' steady' : ''}`, close,
    h('div', { class: 'row' }, h('h2', {}, 'Settings'), button('Close', close, { kind: 'quiet end' })),
    state.problem ? failure('The settings of the project cannot be read', state.problem) : null,
    state.settings ? h('input', { type: 'search', 'aria-label': 'Find a setting', placeholder: `Find one of ${state.settings.length} settings`, value: state.wanted, oninput, mount: focusByKeys }) : null,
    words.length ? found(words) : Object.entries(GROUPS).map(group),
    state.settings ? h('p', { class: 'caption muted' }, 'Settings of the project are kept in its file, and are in force from the next start of the server. An empty field leaves the default.') : null);
}

/** On a touch screen a focus opens the keyboard over the dialog. */
function focusByKeys(element) {
  if (!matchMedia('(pointer: coarse)').matches) element.focus();
}

function found(words) {
  const labels = Object.assign({}, ...Object.values(GROUPS));
  const shown = (state.settings ?? []).filter((one) => words.every((word) => `${one.name} ${one.doc} ${labels[one.name] ?? ''}`.toLowerCase().includes(word)));
  const isLook = words.every((word) => LOOK_WORDS.includes(word));
  return [isLook ? group(['Look', {}]) : null, h('ul', { class: 'settings' }, shown.map((one) => row(one, labels[one.name]))), isLook || shown.length ? null : h('p', { class: 'muted' }, 'No setting has these words.')];
}

function group([name, labels]) {
  const own = { Look: look, Model: () => (mayChoose() ? button('Choose a model', chooseModel) : null) }[name]?.();
  const known = (state.settings ?? []).filter((one) => one.name in labels);
  if (!own && !known.length) return null;
  return h('section', { key: name, class: 'settings-group' }, h('h3', {}, name), own, h('ul', { class: 'settings' }, Object.keys(labels).map((key) => known.find((one) => one.name === key)).filter(Boolean).map((one) => row(one, labels[one.name]))));
}

/** What this browser keeps. */
function look() {
  const chosen = pref('theme', 'system');
  const set = (theme) => () => {
    keepPref('theme', theme);
    applyTheme(theme);
    changed();
  };
  const letters = (event) => {
    keepPref('letters', event.target.checked);
    changed();
  };
  return [
    h('fieldset', { class: 'choice' }, h('legend', {}, 'Theme'), ['system', 'light', 'dark'].map((theme) => h('label', {}, h('input', { type: 'radio', name: 'theme', value: theme, checked: chosen === theme, onchange: set(theme) }), theme))),
    h('label', { class: 'choice' }, h('input', { type: 'checkbox', checked: pref('letters', true), onchange: letters }), 'Single letters are keys'),
  ];
}

function row(one, label = '') {
  return h('li', { key: one.name }, h('label', { class: 'field' }, h('span', {}, label ? h('b', {}, label) : h('b', {}, one.name), ' ', h('span', { class: 'caption' }, withCode(label ? one.doc.split('. ')[0].replace(/\.?$/, '.') : one.doc))), control(one)), note(one),
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
