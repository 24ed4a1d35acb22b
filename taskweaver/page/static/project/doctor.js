/** The checks of what works here, as `taskweaver doctor` makes them. */

import * as api from '../core/api.js';
import { button, dialog, failure } from '../core/bits.js';
import { h } from '../core/dom.js';
import { spinner, stateTag } from '../core/icons.js';
import { changed } from '../core/loop.js';
import { seen } from '../core/words.js';
import { showDialog } from '../state.js';

const state = { checks: null, problem: '', isBusy: false };
const TAGS = { ok: ['done', 'ok'], warn: ['asks', 'limited'], fail: ['failed', 'failed'] };

/** Open the dialog, and make the checks. */
export function openDoctor() {
  showDialog(doctorDialog);
  if (!state.isBusy) check();
}

async function check() {
  Object.assign(state, { checks: null, problem: '', isBusy: true });
  changed();
  try {
    state.checks = (await api.post('doctor')).checks;
  } catch (error) {
    state.problem = error.message;
  }
  state.isBusy = false;
  changed();
}

function doctorDialog() {
  const close = () => showDialog(null);
  return dialog('What works here', 'project', close,
    h('div', { class: 'row' }, h('h2', {}, 'What works here'), h('span', { class: 'end row' }, button('Check again', check, { disabled: state.isBusy }), button('Close', close, { kind: 'quiet' }))),
    state.isBusy ? h('p', { class: 'row muted', role: 'status' }, spinner(), h('span', { class: 'grow' }, 'Kernels and the model are tried; it takes some seconds.')) : null,
    state.problem ? failure('The checks could not be made', state.problem) : null,
    state.checks ? h('ul', { class: 'checks' }, state.checks.map(row)) : null);
}

function row(one) {
  return h('li', {}, h('span', { class: 'row' }, h('b', {}, seen(one.name)), stateTag(...TAGS[one.status])), h('p', { class: 'muted' }, seen(one.detail)), one.fix ? h('p', {}, seen(one.fix)) : null);
}
