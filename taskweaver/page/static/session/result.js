/** The one result of an answer, a chart or a table, and what can be done with it. */

import { announce } from '../core/announce.js';
import * as api from '../core/api.js';
import { button, menu } from '../core/bits.js';
import { copyText, saveText } from '../core/clipboard.js';
import { h, local } from '../core/dom.js';
import { count, seen } from '../core/words.js';
import { asCsv, numberOf, shownNumbers } from '../text/plain_table.js';
import { table } from '../text/table.js';
import { notify } from '../state.js';
import { attempt, compare, openFork } from './actions.js';
import { chart, labelOf } from './chart.js';
import { figure } from './figure.js';
import { titled } from './paths.js';
import { PICTURE } from './picture.js';

const PAGE = 200;

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

/** Return a sentence with the highest and the lowest row of a table with one number; null for others. */
export function extremes(found, reading) {
  if (!found || found.note || found.head.length !== 2 || found.rows.length < 3) return null;
  const values = found.rows.map((row) => numberOf(row[1]));
  if (values.some((value) => value === null) || new Set(values).size < 2) return null;
  const shown = shownNumbers(found.head[1], found.rows.map((row) => row[1]));
  const [most, least] = [Math.max(...values), Math.min(...values)].map((value) => values.indexOf(value));
  if ([most, least].some((at) => values.filter((value) => value === values[at]).length > 1)) return null;
  const isSum = /^(?:(?:line|bar) chart of )?(?:sum|total|count|number)\b/i.test(reading);
  const sum = String(Number(values.reduce((all, one) => all + one, 0).toPrecision(12)));
  const name = (at) => labelOf(found.rows[at][0]);
  return h('p', {}, h('b', {}, name(most)), ' is highest with ', h('b', {}, shown[most]), `, ${name(least)} lowest with ${shown[least]}.`, isSum ? ` All together ${shownNumbers(found.head[1], [sum])[0]}.` : '');
}

/** Return the buttons below an answer. */
export function answerTools(session, round, entry, context, answer) {
  const found = answer.result?.table;
  const picture = answer.result?.figures.find((path) => PICTURE.test(path));
  if (session.isReadOnly) return null;
  const others = context.isSide ? [] : session.branches.filter((one) => one.name !== context.branch);
  const with_ = (name) => `Compare with ${titled(session, name)}`;
  return h('div', { class: 'answer-tools' },
    found ? button('Save as CSV', () => attempt(() => saveCsv(session, entry, context, answer.result)), { sign: 'save' }) : null,
    picture ? button('Save chart', () => api.save(session.where, picture, round.branch), { sign: 'search', kind: 'wide' }) : null,
    button('Fork here', () => openFork(session, context.branch, entry.number), { sign: 'fork' }),
    others.length === 1 ? button(with_(others[0].name), () => compare(session, others[0].name), { sign: 'compare', kind: 'wide' }) : null,
    others.length > 1 ? menu('compare', 'Compare with', others.map((one) => [titled(session, one.name), () => compare(session, one.name)]), false, 'Compare with...') : null,
    answer.whole ? button('Copy', () => copyText(answer.whole), { kind: 'quiet', sign: 'copy' }) : null);
}

/** Save the table; one that was printed in part is read from the kernel. */
async function saveCsv(session, entry, context, { table: printed, title }) {
  const found = printed.note ? await wholeTable(session, entry, context) : printed;
  const name = `${title.replace(/[^\p{L}\p{N} ._-]+/gu, '-').slice(0, 80)}.csv`;
  saveText(asCsv(found), name);
  const text = `Saved ${name}, ${count(found.rows.length, 'row')}`;
  notify(text);
  announce(text);
}

async function wholeTable(session, entry, context) {
  const round = context.isPast || entry.number < context.number ? ['rounds', String(entry.number)] : [];
  const where = `${session.where}/branches/${api.path(context.branch, ...round, 'variables', 'result', 'rows')}`;
  const rows = [];
  let page;
  do {
    page = await api.get(where, { first_row: rows.length, rows: PAGE, first_column: 0, columns: 50 });
    rows.push(...page.cells.map((cells, at) => [...(page.labels[at] ?? []), ...cells].map((value) => String(value?.text ?? value ?? ''))));
  } while (page.cells.length && rows.length < page.found_rows);
  return { head: [...page.label_names, ...page.columns.map((one) => one.name)].map((name) => name ?? ''), rows };
}
