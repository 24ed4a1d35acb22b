/** The dialog in which the model that answers is chosen, tested and added. */

import * as api from '../core/api.js';
import { button, dialog, failure, field, loading } from '../core/bits.js';
import { copyText } from '../core/clipboard.js';
import { h } from '../core/dom.js';
import { icon, spinner } from '../core/icons.js';
import { afterDraw, changed } from '../core/loop.js';
import { seen } from '../core/words.js';
import { notify, showDialog, ui } from '../state.js';
import { keepModel, modelSign } from './chip.js';

const LOOK_MS = 3000;
const OFFLINE = 'offline';
const state = {};
let looking = null;

/** Open the dialog, and look for models until it is closed. */
export function openModels() {
  Object.assign(state, { list: null, problem: '', chosen: '', test: null, testing: null, scope: '', provider: '', model: '', key: '', address: '', isBusy: false, isCopied: false });
  showDialog(view);
  look();
}

async function look() {
  clearTimeout(looking);
  try {
    const list = await api.get('models');
    const isFirst = !state.list;
    Object.assign(state, { list, problem: '' });
    if (isFirst) {
      state.chosen = list.models.find((row) => row.is_answering)?.id ?? OFFLINE;
      state.scope = list.scopes[0] ?? '';
      state.provider = list.providers[0]?.name ?? '';
      afterDraw(() => document.querySelector('.model-rows input:checked')?.focus());
    }
  } catch (error) {
    state.problem = error.message;
  }
  changed();
  if (ui.dialog === view) looking = setTimeout(() => ui.dialog === view && look(), LOOK_MS);
}

function close() {
  if (state.testing) cancel();
  clearTimeout(looking);
  state.key = '';
  showDialog(null);
  afterDraw(() => document.querySelector('.model-chip')?.focus());
}

function rowOf(id) {
  return state.list?.models.find((row) => row.id === id);
}

function choose(id) {
  if (state.testing) cancel();
  Object.assign(state, { chosen: id, test: null });
  const row = rowOf(id);
  if (row.is_local && row.provider !== OFFLINE) test(id);
  changed();
}

async function test(id) {
  const testing = { id, name: rowOf(id).name, from: Date.now() };
  Object.assign(state, { testing, test: null });
  changed();
  try {
    const found = await api.post('models/test', { id });
    if (state.testing === testing && found.state !== 'cancelled') state.test = { ...found, name: testing.name };
  } catch (error) {
    if (state.testing === testing) state.test = { state: 'failed', name: testing.name, detail: error.message };
  }
  if (state.testing === testing) state.testing = null;
  changed();
}

function cancel() {
  const { id } = state.testing;
  state.testing = null;
  api.remove('models/test', { id }).catch(() => {});
  changed();
}

async function add(event) {
  event.preventDefault();
  const provider = state.list.providers.find((one) => one.name === state.provider);
  state.isBusy = true;
  const [name, address] = [state.model.trim() || provider.model, state.address.trim().replace(/\/+$/, '')];
  const testing = { id: `${provider.name}/${name}${provider.needs_address ? `@${address}` : ''}`, name: name || provider.label, from: Date.now() };
  Object.assign(state, { testing, test: null });
  changed();
  try {
    const { row, test: found } = await api.post('models', { provider: state.provider, model: state.model.trim(), key: state.key.trim(), address: state.address.trim() });
    if (found.state !== 'cancelled') state.test = { ...found, name: row?.name ?? provider.label, isNotSaved: !row };
    if (row) {
      await look();
      Object.assign(state, { chosen: row.id, model: '', key: '' });
    }
  } catch (error) {
    state.test = { state: 'failed', name: provider.label, detail: error.message, isNotSaved: true };
  }
  Object.assign(state, { isBusy: false, testing: null });
  changed();
}

async function use() {
  const { name } = rowOf(state.chosen);
  state.isBusy = true;
  changed();
  try {
    const now = await api.put('model', { id: state.chosen, scope: state.scope });
    keepModel(now);
    close();
    const undo = async () => {
      try {
        keepModel(await api.remove('model'));
      } catch (error) {
        notify(error.message);
      }
      changed();
    };
    notify([`${name} answers from now on.`, now.note].filter(Boolean).join(' '), now.can_undo ? { text: 'Undo', run: undo } : null);
  } catch (error) {
    state.test = { state: 'failed', name, detail: error.message, isNotSaved: true };
  }
  state.isBusy = false;
  changed();
}

function view() {
  const { list, problem } = state;
  const row = rowOf(state.chosen);
  return dialog('Which model answers?', 'models', close,
    h('div', { class: 'row' }, h('h2', {}, 'Which model answers?'), button('', close, { kind: 'quiet end', sign: 'cross', label: 'Close' })),
    h('p', { class: 'muted' }, 'The model reads your question and writes the code. A ', h('b', {}, 'local'), ' model sends nothing out. A ', h('b', {}, 'remote'), ' model is sent your questions, the column names, some values and the results.'),
    problem && !list ? failure('The models cannot be listed', problem) : null,
    list ? [
      list.now.why_fixed ? h('p', { class: 'warning' }, icon('warn'), seen(list.now.why_fixed)) : null,
      list.now.problem ? h('p', { class: 'warning' }, icon('warn'), seen(list.now.problem)) : null,
      h('fieldset', { class: 'model-rows' }, h('legend', {}, h('b', {}, 'Ready to use'), ' ', h('span', { class: 'muted' }, 'found just now')), list.models.map(modelRow)),
      testLine(row), addForm(list), localHelp(list.local_help),
    ] : problem ? null : loading(6),
    h('div', { class: 'dialog-foot row' }, list?.scopes.length > 1 ? scopes(list.scopes) : null,
      h('span', { class: 'row end' }, button('Cancel', close), button(row ? `Use ${row.provider === OFFLINE ? 'no model' : seen(row.name)}` : 'Use', use, { kind: 'primary', disabled: !row || row.is_answering || state.isBusy || !list.scopes.length }))));
}

function modelRow(row) {
  const tag = (text, kind = '') => h('span', { class: `state ${kind}` }, text);
  return h('label', { key: row.id, class: `model-row${row.id === state.chosen ? ' chosen' : ''}` },
    h('input', { type: 'radio', name: 'model', value: row.id, checked: row.id === state.chosen, onchange: () => choose(row.id) }),
    icon(modelSign(row)), h('span', { class: 'model-name shrink' }, seen(row.name)), h('span', { class: 'model-place muted' }, whereFrom(row)),
    h('span', { class: 'row end tags' }, tag(row.is_local ? 'local' : 'remote'), tag(row.is_free ? 'free' : 'paid'), row.is_answering ? tag('answers now', 'running') : null));
}

function whereFrom(row) {
  if (row.provider === OFFLINE) return 'Built-in analyst: sums, groups, filters, charts';
  const size = row.size_bytes ? `${(row.size_bytes / 1e9).toFixed(1)} GB` : '';
  const key = row.key_from ? `key found in ${row.key_from === 'configuration' ? 'the configuration' : row.key_from}` : '';
  return seen([row.label, size, key].filter(Boolean).join(', '));
}

/** One line keeps its place below the list: the test that runs, its outcome, or how to begin one. */
function testLine(row) {
  const { testing, test: done } = state;
  const tick = (element) => {
    const show = () => { element.textContent = `${Math.round((Date.now() - state.testing?.from || 0) / 1000)} s`; };
    show();
    const id = setInterval(show, 500);
    return () => clearInterval(id);
  };
  if (testing) return h('div', { class: 'test-line' }, spinner(), h('span', { role: 'status' }, `Testing ${seen(testing.name)}, `), h('span', { mount: tick, key: testing.from }), button('Cancel', cancel, { kind: 'small end' }));
  if (done) {
    const isGood = done.state === 'works';
    return h('div', { class: `test-line ${isGood ? 'is-good' : done.state}` }, icon(isGood ? 'check' : done.state === 'no-tools' ? 'warn' : 'cross'),
      h('span', { role: 'status' }, isGood ? h('b', {}, `${seen(done.name)} works. `) : null, seen(done.detail), done.isNotSaved ? ' Nothing was saved.' : ''),
      row && !done.isNotSaved ? button('Test again', () => test(row.id), { kind: 'small end' }) : null);
  }
  if (!row || row.provider === OFFLINE) return h('div', { class: 'test-line muted' }, h('span', { role: 'status' }, 'It answers questions about tables without a model, and says what it cannot read.'));
  return h('div', { class: 'test-line' }, h('span', { class: 'muted', role: 'status' }, `${seen(row.name)} was not tested yet.`), button(row.is_free ? 'Test' : 'Test (costs less than 1 cent)', () => test(row.id), { kind: 'small end' }));
}

function addForm(list) {
  const keep = (name) => (event) => {
    state[name] = event.target.value;
    changed();
  };
  const provider = list.providers.find((one) => one.name === state.provider) ?? {};
  const isRefused = provider.needs_key && !list.may_enter_key;
  const isReady = (!provider.needs_key || state.key.trim()) && (!provider.needs_address || state.address.trim()) && !isRefused && !state.isBusy;
  const text = (name, label, more) => field(label, h('input', { type: 'text', 'aria-label': label, value: state[name], autocomplete: 'off', oninput: keep(name), ...more }));
  return h('form', { class: 'add-model', onsubmit: add }, h('h3', {}, 'Another provider'), h('div', { class: 'add-fields' },
    field('Provider', h('select', { 'aria-label': 'Provider', value: state.provider, onchange: keep('provider') }, list.providers.map((one) => h('option', { key: one.name, value: one.name }, one.label)))),
    text('model', 'Model', { placeholder: provider.model || 'its default' }),
    provider.needs_address ? text('address', 'Address', { placeholder: 'https://host/v1' }) : null,
    text('key', 'Key', { type: 'password', placeholder: provider.needs_key ? 'Paste the key' : 'if it needs one', disabled: !list.may_enter_key }),
    h('button', { type: 'submit', class: 'button', disabled: !isReady }, 'Add')),
  h('p', { class: 'caption muted' }, list.may_enter_key ? 'The key is kept in a file that only you can read, never in the project.' : 'Keys can be entered on this machine or over https only.'));
}

function localHelp(help) {
  if (!help) return null;
  const command = h('div', { class: 'command-line' }, h('code', {}, help.command), button(state.isCopied ? 'Copied' : 'Copy', () => copyText(help.command).then(() => { state.isCopied = true; changed(); }), { sign: 'copy', kind: 'small' }));
  return h('section', { class: 'local-help' }, h('h3', {}, 'Get a small local model ', h('span', { class: 'muted' }, `${help.size_gb} GB, needs ${help.memory_gb} GB of memory, no account`)),
    help.has_ollama ? command : h('ol', {}, h('li', {}, '1. Install Ollama from ', h('a', { href: 'https://ollama.com', target: '_blank', rel: 'noopener noreferrer' }, 'ollama.com')), h('li', {}, '2. Run ', command)),
    h('p', { class: 'caption muted' }, 'Run it in a terminal. The model appears above by itself.'));
}

function scopes(names) {
  const texts = { project: 'this project', user: 'all my projects' };
  return h('span', { class: 'row' }, h('span', { class: 'muted' }, 'Use it for'), h('span', { class: 'switch', role: 'radiogroup', 'aria-label': 'Use it for' }, names.map((name) =>
    h('label', { key: name, class: state.scope === name ? 'chosen' : '' }, h('input', { type: 'radio', class: 'unseen', name: 'scope', checked: state.scope === name, onchange: () => { state.scope = name; changed(); } }), texts[name]))));
}
