/** Small tables in text: sorted by a click on a column, copied as tab-separated values. */

import { copyText } from '../core/clipboard.js';
import { h, local } from '../core/dom.js';
import { icon } from '../core/icons.js';
import { seen } from '../core/words.js';
import { isMissing, isNumber, shownNumbers, sortedRows } from './plain_table.js';

/** Return a table of `{head, rows, note}`. */
export function table({ head, rows, note = '' }) {
  return local({ class: 'table-part' }, null, (order, set) => {
    const shown = order ? sortedRows(rows, order.column, order.isDown) : rows;
    const isNumeric = head.map((_, at) => rows.every((row) => isNumber(row[at]) || isMissing(row[at])));
    const columns = head.map((name, at) => (isNumeric[at] ? shownNumbers(name, shown.map((row) => row[at])) : null));
    const sort = (column) => set({ column, isDown: order?.column === column ? !order.isDown : isNumeric[column] });
    const title = (name, at) => h('th', { class: isNumeric[at] ? 'right' : '', 'aria-sort': ariaSort(order, at), scope: 'col' },
      h('button', { type: 'button', class: 'bare', onclick: () => sort(at) }, seen(name) || '#', sortSign(order, at)));
    const cell = (text, at, row) => {
      const read = columns[at]?.[row] ?? text;
      return h('td', { class: `${isNumeric[at] ? 'right' : ''}${isMissing(text) ? ' missing' : ''}`, 'data-name': seen(head[at]), title: read === text ? null : text }, seen(read));
    };
    return [
      h('div', { class: 'table-box', tabindex: 0, role: 'group', 'aria-label': 'Table' }, h('table', {},
        h('thead', {}, h('tr', {}, head.map(title))),
        h('tbody', {}, shown.map((row, number) => h('tr', {}, row.map((text, at) => cell(text, at, number))))))),
      note ? h('p', { class: 'muted caption' }, note) : null,
      h('button', { type: 'button', class: 'button quiet small copy', onclick: () => copyText(asTsv(head, shown)) }, icon('copy'), note ? 'Copy these rows' : 'Copy table'),
    ];
  });
}

/** Return the value of `aria-sort` for a column. */
function ariaSort(order, column) {
  if (order?.column !== column) return 'none';
  return order.isDown ? 'descending' : 'ascending';
}

/** Return the sign of a column's order. */
function sortSign(order, column) {
  return order?.column === column ? icon(order.isDown ? 'down' : 'up') : null;
}

/** Return rows as tab-separated values. */
export function asTsv(head, rows) {
  return [head, ...rows].map((row) => row.map((cell) => String(cell ?? '').replace(/[\t\n]/g, ' ')).join('\t')).join('\n');
}
