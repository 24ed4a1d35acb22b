/** Cards of the files that were added: their first rows, the kinds of their columns, and questions. */

import * as api from '../core/api.js';
import { button } from '../core/bits.js';
import { h } from '../core/dom.js';
import { icon } from '../core/icons.js';
import { changed } from '../core/loop.js';
import { seen } from '../core/words.js';
import { choices, withoutFile } from '../start/choices.js';
import { factsOf } from '../start/files.js';
import { ui } from '../state.js';
import { ask } from './actions.js';

const LOOK_MS = 1000;
const MOST_CARDS = 3;

/** Read what is in the files of a branch: of those that were just added, or of all where nothing was asked yet. */
export async function readCards(session, branch, name = '') {
  const found = await api.get(`${session.where}/overview`, { branch }).catch(() => null);
  if (!found) return;
  session.cards ??= [];
  const after = session.path?.(branch).length ?? 0;
  for (const file of found.files.filter((one) => !name || one.name === name).slice(0, MOST_CARDS)) {
    const known = session.cards.find((one) => one.file.name === file.name && one.branch === branch);
    if (known) known.file = file;
    else session.cards.push({ branch, after, file });
  }
  if (found.files.some((one) => one.is_being_read)) setTimeout(() => readCards(session, branch, name), LOOK_MS);
  changed();
}

/** Return the cards of files that were added after a round of a branch; the newest offers its questions until one is asked. */
export function cardsAfter(session, branch, number, isEnd) {
  const shown = (session.cards ?? []).filter((one) => one.branch === branch && one.after === number);
  if (!shown.length) return null;
  const { file } = shown.at(-1);
  const offered = [{ text: `What is in ${file.name}?`, result: 'an overview' }, ...file.questions.map((one) => ({ text: one.text, shown: withoutFile(one), result: one.result }))].slice(0, 3);
  return h('div', { key: `cards-${number}`, class: 'cards' }, shown.map((one) => card(one.file)), isEnd ? choices(offered, (text) => ask(session, branch, text), 'Ask next') : null);
}

function card(file) {
  const openAll = () => {
    Object.assign(ui, { tab: 'files', pane: 'data', isDrawerOpen: true });
    ui.panes.isDataHidden = false;
    changed();
  };
  return h('section', { key: file.name, class: 'added-card', 'aria-label': seen(file.name) },
    h('div', { class: 'row added-head' }, icon('data'), h('b', { class: 'shrink' }, seen(file.name)), h('span', { class: 'muted' }, file.is_being_read ? 'is being read' : factsOf(file)), button('Open all', openAll, { kind: 'quiet end' })),
    file.problem ? h('p', { class: 'failed-text row pad' }, icon('cross'), seen(file.problem)) : null,
    file.columns.length ? h('div', { class: 'table-box', tabindex: 0, role: 'group', 'aria-label': `First rows of ${seen(file.name)}` }, h('table', {},
      h('thead', {}, h('tr', {}, file.columns.map((one) => h('th', { scope: 'col', class: side(one) }, seen(one.name), h('div', { class: 'kind' }, one.kind))))),
      h('tbody', {}, file.sample.map((cells) => h('tr', {}, file.columns.map((one, at) => h('td', { class: side(one) }, seen(cells[at] ?? ''))))))) ) : null);
}

function side({ kind }) {
  return kind === 'number' ? 'right' : '';
}
