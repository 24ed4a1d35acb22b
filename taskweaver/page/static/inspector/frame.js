/** A table of the kernel in a dialog: pages that the kernel sorts and filters. */

import * as api from '../core/api.js';
import { button, dialog } from '../core/bits.js';
import { h } from '../core/dom.js';
import { icon } from '../core/icons.js';
import { changed } from '../core/loop.js';
import { seen } from '../core/words.js';
import { copyText } from '../core/clipboard.js';
import { later, withModule } from '../later.js';
import { attempt } from '../session/actions.js';
import { withDays } from '../text/plain_table.js';
import { asTsv } from '../text/table.js';
import { showDialog } from '../state.js';

const ROWS = 100;
const COLUMNS = 50;
const COMPARISONS = { contains: 'contains', eq: '=', ne: '≠', lt: '<', le: '≤', gt: '>', ge: '≥', missing: 'is missing', present: 'is there' };
const NUMERIC = new Set(['integer', 'number', 'duration']);

const view = { name: '', where: '', when: '', asked: null, draft: null, page: null, problem: '', request: null };

/** Show a table of a moment, a past one or now; it is read now. */
export function openFrame(session, moment, name) {
  const round = moment.isPast ? ['rounds', String(moment.number)] : [];
  const where = `${session.where}/branches/${api.path(moment.branch, ...round, 'variables', name, 'rows')}`;
  const when = moment.isPast ? `as it was at round ${moment.number}` : '';
  Object.assign(view, { name, where, when, page: null, draft: { column: 0, comparison: 'contains', value: '' } });
  ask({ row: 0, column: 0, order: null, filter: null });
  showDialog(frameDialog);
}

function frameDialog() {
  return dialog(`Table ${seen(view.name)}`, 'wide frame', close,
    h('div', { class: 'row' }, h('h2', {}, seen(view.name)), h('span', { class: 'muted' }, [view.when, size(view.page)].filter(Boolean).join(': ')), button('Close', close, { kind: 'quiet end' })),
    view.problem ? h('p', { class: 'warning', role: 'alert' }, icon('warn'), view.problem) : null,
    view.page ? [filterForm(view.page), grid(view.page), pager(view.page), tools(view.page)] : view.problem ? null : h('span', { class: 'bar' }));
}

function close() {
  view.request?.abort();
  showDialog(null);
}

/** Ask the kernel for a page; an earlier answer that is still under way is not waited for. */
async function ask(wanted) {
  view.request?.abort();
  const request = new AbortController();
  Object.assign(view, { asked: wanted, request, problem: '', isCopied: false });
  changed();
  const query = { first_row: wanted.row, rows: ROWS, first_column: wanted.column, columns: COLUMNS };
  try {
    const page = await api.get(view.where, { ...query, ...chosen(wanted) }, request.signal);
    if (view.request === request) show(page);
  } catch (error) {
    if (view.request !== request || error.name === 'AbortError') return;
    view.problem = error.message;
  }
  changed();
}

/** The order and the filter of rows that are asked for, as the server takes them. */
function chosen({ order, filter }) {
  return { order: order ? JSON.stringify([[order.column, order.isDown]]) : '', filters: filter ? JSON.stringify([[filter.column, filter.comparison, filter.value]]) : '' };
}

/** Show a page; the filter is about a column that is on it. */
function show(page) {
  view.page = page;
  const { column } = view.draft;
  const isThere = column >= page.first_column && column < page.first_column + page.columns.length;
  if (!isThere) view.draft.column = page.first_column;
}

function size(page) {
  if (!page) return '';
  const rows = page.found_rows === page.rows ? count(page.rows) : `${count(page.found_rows)} of ${count(page.rows)}`;
  return `${rows} rows, ${count(page.total_columns)} columns`;
}

function count(number) {
  return number.toLocaleString('en-US');
}

function grid(page) {
  const { order } = view.asked;
  const sort = (column, kind) => {
    const isDown = order?.column === column ? !order.isDown : NUMERIC.has(kind);
    ask({ ...view.asked, row: 0, order: { column, isDown } });
  };
  const title = (column, at) => {
    const number = page.first_column + at;
    const isSorted = order?.column === number;
    const direction = isSorted ? (order.isDown ? 'descending' : 'ascending') : 'none';
    return h('th', { scope: 'col', class: NUMERIC.has(column.kind) ? 'right' : '', 'aria-sort': direction, title: seen(column.dtype) },
      h('button', { type: 'button', class: 'bare', onclick: () => sort(number, column.kind) }, seen(column.name) || '#', isSorted ? icon(order.isDown ? 'down' : 'up') : null));
  };
  const isDay = page.columns.map(({ kind }, at) => kind === 'time' && page.cells.every((cells) => cells[at] === null || MIDNIGHT.test(cells[at])));
  const shown = (value, column) => text(isDay[column] && value !== null ? value.replace(MIDNIGHT, '') : value);
  const row = (cells, at) => h('tr', {}, (page.labels[at] ?? []).map((label) => h('th', { scope: 'row' }, text(label))),
    cells.map((value, column) => h('td', { class: `${NUMERIC.has(page.columns[column].kind) ? 'right' : ''}${value === null ? ' missing' : ''}` }, shown(value, column))));
  return h('div', { class: 'table-box', tabindex: 0, role: 'group', 'aria-label': `Rows of ${seen(view.name)}` }, h('table', {},
    h('thead', {}, h('tr', {}, page.label_names.map((name) => h('th', { scope: 'col' }, seen(name))), page.columns.map(title))),
    h('tbody', {}, page.cells.map(row))));
}

const MIDNIGHT = /(?<=^\d{4}-\d\d-\d\d)T00:00:00$/; // of columns that hold days alone

/** Return a value as it is read, numbers to ten digits; one that JSON does not hold has a text. */
function text(value) {
  if (value === null) return 'missing';
  if (typeof value === 'number') return String(Number(value.toPrecision(Number.isInteger(value) ? 16 : 10)));
  if (typeof value === 'object') return seen(value.text) + (value.length > value.text.length ? ` … (${count(value.length)} characters)` : '');
  return seen(String(value));
}

function filterForm(page) {
  const { draft } = view;
  const needsValue = !['missing', 'present'].includes(draft.comparison);
  const keep = (name) => (event) => {
    draft[name] = name === 'column' ? Number(event.target.value) : event.target.value;
    changed();
  };
  const apply = (event) => {
    event.preventDefault();
    ask({ ...view.asked, row: 0, filter: { ...draft } });
  };
  const columns = page.columns.map((column, at) => h('option', { value: String(page.first_column + at) }, seen(column.name) || '#'));
  return h('form', { class: 'row', onsubmit: apply },
    h('select', { 'aria-label': 'Column', onchange: keep('column'), update: (element) => { element.value = String(draft.column); } }, columns),
    h('select', { 'aria-label': 'Comparison', onchange: keep('comparison'), update: (element) => { element.value = draft.comparison; } },
      Object.entries(COMPARISONS).map(([key, word]) => h('option', { value: key }, word))),
    needsValue ? h('input', { type: 'search', 'aria-label': 'Value', value: draft.value, oninput: keep('value') }) : null,
    h('button', { type: 'submit', class: 'button small' }, 'Filter'),
    view.asked.filter ? button('All rows', () => ask({ ...view.asked, row: 0, filter: null }), { kind: 'quiet' }) : null);
}

/** What can be done with the rows: those that are shown are copied, all that fit the filter are saved. */
function tools(page) {
  const rows = () => withDays(page.cells.map((cells, at) => [...(page.labels[at] ?? []), ...cells].map((value) => (value === null ? '' : text(value)))));
  const copy = async () => {
    await copyText(asTsv([...page.label_names, ...page.columns.map((one) => one.name)], rows()));
    view.isCopied = true;
    changed();
  };
  const save = (suffix) => () => withModule(later.table, (saving) => attempt(async () => saving.saveRows(await saving.allRows(view.where, chosen(view.asked)), view.name, suffix)));
  return h('div', { class: 'row' },
    button(view.isCopied ? 'Copied' : `Copy ${count(page.cells.length)} rows`, copy, { sign: 'copy', kind: 'small' }),
    button('Save as CSV', save('csv'), { sign: 'save', kind: 'small' }), button('Save as Excel', save('xlsx'), { sign: 'save', kind: 'small' }));
}

function pager(page) {
  const last = page.first_row + page.cells.length;
  const until = page.first_column + page.columns.length;
  const move = (change) => () => ask({ ...view.asked, ...change });
  return h('div', { class: 'row' },
    h('span', { class: 'muted' }, page.cells.length ? `Rows ${count(page.first_row + 1)} to ${count(last)}` : 'No rows'),
    page.first_row > 0 ? button('Previous rows', move({ row: Math.max(0, page.first_row - ROWS) }), { kind: 'small' }) : null,
    last < page.found_rows ? button('Next rows', move({ row: last }), { kind: 'small' }) : null,
    page.total_columns > COLUMNS ? h('span', { class: 'muted end' }, `Columns ${count(page.first_column + 1)} to ${count(until)}`) : null,
    page.first_column > 0 ? button('Previous columns', move({ column: Math.max(0, page.first_column - COLUMNS) }), { kind: 'small' }) : null,
    until < page.total_columns ? button('Next columns', move({ column: until }), { kind: 'small' }) : null);
}
