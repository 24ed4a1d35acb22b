/** A cell: one line while it is folded; its output is shown, its code on request. */

import { button } from '../core/bits.js';
import { h, local, memo } from '../core/dom.js';
import { icon, spinner, stateTag } from '../core/icons.js';
import { changed } from '../core/loop.js';
import { count, seconds, seen } from '../core/words.js';
import { lineDiff } from '../text/diff.js';
import { codeBlock, diffLines } from '../text/highlight.js';
import { readTable } from '../text/plain_table.js';
import { table } from '../text/table.js';
import { ui } from '../state.js';
import { ask } from './actions.js';
import { askCard } from './ask_card.js';
import { figure } from './figure.js';

const LIVE_LINES = 12;
const MOST_LINES = 40;
const SHOWN_LINES = 12;
const NOISE = /^[^\n]*: \d+ rows x \d+ columns, [^\n]*$/;

/** Return a cell of a round. */
export function cell(session, round, item, isAnswered = false) {
  const isOpen = isCellOpen(round, item);
  const bodyId = `code-${item.id}`;
  return h('div', { key: item.id, class: `cell ${item.state}`, role: 'group', 'aria-label': `Code: ${seen(item.intent)}` },
    h('button', { type: 'button', class: 'cell-head', 'aria-expanded': String(isOpen), 'aria-controls': bodyId, onclick: () => toggle(round, item, isOpen) },
      icon(isOpen ? 'down' : 'right'), h('span', { class: 'intent' }, seen(item.intent)), h('span', { class: 'muted' }, isProfile(item) ? `profile, ${count(item.lines, 'line')}` : `${count(item.lines, 'line')} of code`), h('span', { class: 'end muted' }, timeOf(item))),
    h('div', { id: bodyId, class: 'cell-code', hidden: !isOpen }, isOpen ? memo('code', [item.code, item.corrects], () => h('div', {}, codeOf(item))) : null),
    item.asks ? askCard(session, round, item) : null,
    (isAnswered || isProfile(item)) && item.state === 'done' && !isOpen ? null : outcome(session, round, item));
}

/** What a profile prints is for the model: it is shown on request. */
function isProfile(item) {
  return item.code.startsWith('profile_tables(');
}

function isCellOpen(round, item) {
  const chosen = (ui.openCells.get(round.id) ?? '').split(' ').find((one) => one.slice(1) === item.id);
  if (chosen) return chosen[0] === '+';
  if (ui.allCode !== null) return ui.allCode;
  // What failed or was corrected is never hidden.
  return Boolean(item.corrects) || item.state === 'failed';
}

function toggle(round, item, isOpen) {
  const others = (ui.openCells.get(round.id) ?? '').split(' ').filter((one) => one && one.slice(1) !== item.id);
  ui.openCells.set(round.id, [...others, `${isOpen ? '-' : '+'}${item.id}`].join(' '));
  changed();
}

function timeOf(item) {
  if (item.state === 'running') return h('span', { class: 'timer' }, spinner(), timer(item.runAt));
  if (item.state === 'writing') return h('span', {}, spinner(), 'writing');
  if (item.state === 'failed') return stateTag('failed');
  if (item.state === 'skipped') return item.isDenied ? 'denied, not run' : 'not run';
  if (item.state === 'stopped') return stateTag('stopped');
  return item.seconds === null ? '' : seconds(item.seconds);
}

function timer(from) {
  const mount = (element) => {
    const tick = () => {
      element.textContent = `${Math.max(0, Math.round((Date.now() - from) / 1000))} s`;
    };
    tick();
    const id = setInterval(tick, 1000);
    return () => clearInterval(id);
  };
  return h('span', { class: 'seconds', mount });
}

function codeOf(item) {
  if (!item.corrects) return codeBlock(item.code, item.language);
  return [
    h('p', { class: 'caption muted' }, 'Changed since the cell before:'),
    h('pre', { class: 'code', tabindex: 0, role: 'group', 'aria-label': 'Changes' }, h('code', {}, diffLines(lineDiff(item.corrects, item.code)))),
    local({}, false, (isWhole, set) => (isWhole ? codeBlock(item.code, item.language) : button('Show all of it', () => set(true), { kind: 'quiet' }))),
  ];
}

function outcome(session, round, item) {
  const isLive = ['running', 'writing', 'asks'].includes(item.state);
  const sections = new Map(item.sections.map((one) => [one.name, one.text]));
  const printed = sections.get('Output') ?? item.output;
  const others = item.sections.filter((one) => !['Execution', 'Result', 'Output', 'Error'].includes(one.name) && !(one.name === 'Artifacts' && item.figures.length));
  const parts = [
    item.error ? trace(session, round, item) : null,
    item.refused && item.state === 'skipped' ? h('div', { class: 'failure' }, h('p', { class: 'failure-title' }, icon('cross'), 'Not run'), h('p', {}, seen(item.refused))) : null,
    isLive && printed ? liveOutput(printed) : null,
    !isLive && printed ? output(printed.replace(/^Profile of 1 tables/, 'Profile of 1 table').split('\n').filter((line) => !NOISE.test(line)).join('\n')) : null,
    sections.has('Result') ? result(sections.get('Result')) : null,
    item.figures.map((path) => figure(session, round, path)),
    item.error ? null : others.map((one) => h('div', { class: 'section' }, h('p', { class: 'caption muted' }, one.name), output(one.text))),
  ];
  return parts.flat().some(Boolean) ? h('div', { class: 'cell-out' }, parts) : null;
}

/** A failure: its message first, then the own lines of the traceback. */
function trace(session, round, item) {
  const lines = item.error.trim().split('\n');
  const message = lines.at(-1);
  const near = /^(.*?) \(names like it: (.*)\)$/.exec(message);
  const repair = round.state !== 'created' && !ui.place.round;
  return h('div', { class: 'failure' },
    h('p', { class: 'failure-title' }, icon('cross'), seen(near ? near[1] : message)),
    near ? h('p', {}, 'Near names: ', h('code', {}, seen(near[2]))) : null,
    h('pre', { class: 'trace', tabindex: 0, role: 'group', 'aria-label': 'Traceback' }, seen(lines.slice(0, -1).join('\n'))),
    repair ? h('div', { class: 'row' }, button('Ask for a repair', () => ask(session, round.branch, `The cell failed: ${message}. Please repair it.`), { kind: 'small' })) : null);
}

function liveOutput(text) {
  const lines = text.replace(/\n$/, '').split('\n');
  return h('pre', { class: 'output live', tabindex: 0, role: 'group', 'aria-label': 'Output while it runs' }, seen(lines.slice(-LIVE_LINES).join('\n')));
}

/** Printed text; the middle of a long one is folded. */
function output(text) {
  if (!text.trim()) return null;
  const found = readTable(text);
  if (found) return table(found);
  const lines = text.replace(/\n$/, '').split('\n');
  const block = (shown) => h('pre', { class: 'output', tabindex: 0, role: 'group', 'aria-label': 'Output' }, seen(shown.join('\n')));
  if (lines.length <= MOST_LINES) return block(lines);
  return local({ class: 'folded-output' }, false, (isWhole, set) => (isWhole ? block(lines) : [
    block(lines.slice(0, SHOWN_LINES)),
    h('div', { class: 'row' }, h('span', { class: 'muted' }, `${count(lines.length - 2 * SHOWN_LINES, 'line')} folded`), button('Show all', () => set(true), { kind: 'small' })),
    block(lines.slice(-SHOWN_LINES)),
  ]));
}

function result(text) {
  const found = readTable(text);
  return found ? table(found) : output(text);
}
