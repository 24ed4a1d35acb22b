/** The one result of an answer, a chart or a table, and what can be done with it. */

import * as api from '../core/api.js';
import { button, menu } from '../core/bits.js';
import { copyText } from '../core/clipboard.js';
import { h, local } from '../core/dom.js';
import { count, seen } from '../core/words.js';
import { numberOf, shownNumbers } from '../text/plain_table.js';
import { table } from '../text/table.js';
import { later, withModule } from '../later.js';
import { attempt, compare, openFork } from './actions.js';
import { chart, labelOf } from './chart.js';
import { figure } from './figure.js';
import { titled } from './paths.js';
import { PICTURE } from './picture.js';

/** Return the result `{table, figures}`: a chart or a table where there are both, and other files. */
export function result(session, round, { table: found, figures, title }) {
  const pictures = figures.filter((path) => PICTURE.test(path));
  const others = figures.filter((path) => !PICTURE.test(path)).map((path) => figure(session, round, path));
  const drawn = found && pictures.length === 1 ? chart(/(?:^|_)bar/.test(pictures[0]) ? 'bar' : /line/.test(pictures[0]) ? 'line' : '', found) : null;
  const isKnown = drawn && /(?:^|_)bar|line/.test(pictures[0]);
  const view = () => (isKnown ? drawn : pictures.map((path) => figure(session, round, path)));
  if (!found || !pictures.length) return [found ? h('div', { class: 'result' }, table(found)) : null, pictures.length ? h('div', { class: 'result-figures' }, view()) : null, others];
  const name = `choice-${round.id}`;
  return [local({ class: 'result boxed', key: 'result' }, 'chart', (shown, set) => {
    const option = (value, text) => h('label', { class: shown === value ? 'chosen' : '' }, h('input', { type: 'radio', class: 'unseen', name, value, checked: shown === value, onchange: () => set(value) }), text);
    return [
      h('div', { class: 'row result-head' }, h('b', {}, seen(title)), h('div', { class: 'switch end', role: 'radiogroup', 'aria-label': 'Form of the result' }, option('chart', 'Chart'), option('table', `Table, ${count(found.rows.length, 'row')}`))),
      shown === 'chart' ? view() : table(found),
    ];
  }), others];
}

/** Return a sentence with the highest and the lowest row of a table with one number; null for others. Of a top or bottom list, whose other end says nothing, the first alone. */
export function extremes(found, reading) {
  if (!found || found.note || found.head.length !== 2 || found.rows.length < 3) return null;
  const values = found.rows.map((row) => numberOf(row[1]));
  if (values.some((value) => value === null) || new Set(values).size < 2) return null;
  const shown = shownNumbers(found.head[1], found.rows.map((row) => row[1]));
  const [most, least] = [Math.max(...values), Math.min(...values)].map((value) => values.indexOf(value));
  const [, cut, rest] = /\b(top|bottom|first|last) \d+(.*)/is.exec(reading.replaceAll('`', '')) ?? [];
  if (cut && !(/top|bottom/i.test(cut) && rest.includes(` by ${found.head[1]}`))) return null;
  const told = cut ? [/top/i.test(cut) ? most : least] : [most, least];
  if (told.some((at) => values.filter((value) => value === values[at]).length > 1)) return null;
  const isSum = /^(?:(?:line|bar) chart of )?(?:sum|total|count|number)\b/i.test(reading);
  const sum = String(Number(values.reduce((all, one) => all + one, 0).toPrecision(12)));
  const name = (at) => labelOf(found.rows[at][0]);
  if (cut) return h('p', {}, h('b', {}, name(told[0])), ` is ${told[0] === most ? 'highest' : 'lowest'} with `, h('b', {}, shown[told[0]]), '.');
  return h('p', {}, h('b', {}, name(most)), ' is highest with ', h('b', {}, shown[most]), `, ${name(least)} lowest with ${shown[least]}.`, isSum ? ` All together ${shownNumbers(found.head[1], [sum])[0]}.` : '');
}

/** Return the buttons below an answer. */
export function answerTools(session, round, entry, context, answer) {
  const found = answer.result?.table;
  const picture = answer.result?.figures.find((path) => PICTURE.test(path));
  if (session.isReadOnly) return null;
  const others = context.isSide ? [] : session.branches.filter((one) => one.name !== context.branch);
  const save = (suffix) => () => withModule(later.table, (saving) => attempt(() => saving.saveTable(session, entry, context, answer.result, suffix)));
  const with_ = (name) => `Compare with ${titled(session, name)}`;
  return h('div', { class: 'answer-tools' },
    found ? h('span', { class: 'split' }, button('Save as CSV', save('csv'), { sign: 'save' }), menu('down', 'Save as', [['Save as Excel', save('xlsx')]])) : null,
    picture ? button('Save chart', () => api.save(session.where, picture, round.branch), { sign: 'search', kind: 'wide' }) : null,
    button('Fork here', () => openFork(session, context.branch, entry.number), { sign: 'fork' }),
    others.length === 1 ? button(with_(others[0].name), () => compare(session, others[0].name), { sign: 'compare', kind: 'wide' }) : null,
    others.length > 1 ? menu('compare', 'Compare with', others.map((one) => [titled(session, one.name), () => compare(session, one.name)]), false, 'Compare with...') : null,
    answer.whole ? button('Copy', () => copyText(answer.whole), { kind: 'quiet', sign: 'copy' }) : null);
}
