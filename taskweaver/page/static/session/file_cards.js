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
import { shownNumbers } from '../text/plain_table.js';
import { ask } from './actions.js';

const LOOK_MS = 1000;
const MOST_CARDS = 3;
const [WIDTH, HIGH] = [72, 18];

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
      h('thead', {}, h('tr', {}, file.columns.map((one) => h('th', { scope: 'col', class: side(one) }, seen(one.name), h('div', { class: 'kind' }, one.kind === 'number' && !one.low ? 'empty' : one.kind), bars(one), h('div', { class: 'kind' }, seen(rangeOf(one))))))),
      h('tbody', {}, file.sample.map((cells) => h('tr', {}, file.columns.map((one, at) => h('td', { class: side(one) }, seen(cells[at] ?? ''))))))) ) : null);
}

/** How the values of a column are spread; its range stands below it. */
function bars({ bars: heights, kind }) {
  if (!heights.length) return null;
  const most = Math.max(...heights);
  const step = WIDTH / Math.max(heights.length, 4);
  const top = (height) => HIGH * (1 - height / most);
  // A bar of a group stands alone, parts of a range touch each other.
  const gap = /number|day|time/.test(kind) ? 0.5 : 2;
  return h('svg', { class: 'bars', width: step * heights.length, height: HIGH, 'aria-hidden': 'true' }, heights.map((height, at) => (height ? h('rect', { x: at * step, y: Math.min(top(height), HIGH - 1), width: step - gap, height: Math.max(1, HIGH - top(height)) }) : null)));
}

function rangeOf({ name, kind, low, high }) {
  if (!low) return '';
  if (kind === 'number') return joined(...shownNumbers(name, [low, high]).map((text) => (/\.\d{4}/.test(text) ? String(Number(Number(text).toPrecision(3))) : text.replace(/\.0+$/, ''))));
  const isDay = (text) => /^\d{4}-\d\d-\d\d/.test(text);
  const [from, to] = [low, high].map((text) => (isDay(low) && low.slice(0, 4) !== high.slice(0, 4) ? text.slice(0, 4) : isDay(text) ? text.slice(0, 10) : text));
  return joined(from, to);
}

function joined(from, to) {
  return from === to ? from : `${from} to ${to}`;
}

function side({ kind }) {
  return kind === 'number' ? 'right' : '';
}
