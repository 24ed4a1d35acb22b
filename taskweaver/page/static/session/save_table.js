/** Tables of answers as files: CSV, and a workbook of Excel. */

import { announce } from '../core/announce.js';
import * as api from '../core/api.js';
import { saveBlob } from '../core/clipboard.js';
import { count } from '../core/words.js';
import { notify } from '../state.js';
import { isMissing, isNumber, withDays } from '../text/plain_table.js';
import { workbook } from './workbook.js';

const [PAGE, COLUMNS] = [200, 50];
const FORMS = { csv: asCsv, xlsx: workbook };

/** Save the table of an answer; one that was printed in part is read from the kernel. */
export async function saveTable(session, entry, context, { table: printed, title }, suffix) {
  const round = context.isPast || entry.number < context.number ? ['rounds', String(entry.number)] : [];
  const where = `${session.where}/branches/${api.path(context.branch, ...round, 'variables', 'result', 'rows')}`;
  saveRows(printed.note ? await allRows(where) : printed, title, suffix);
}

/** Save rows `{head, rows}` as a file. */
export function saveRows(found, title, suffix) {
  const name = `${title.replace(/[^\p{L}\p{N} ._-]+/gu, '-').slice(0, 80)}.${suffix}`;
  saveBlob(new Blob([FORMS[suffix](found)]), name);
  const text = `Saved ${name}, ${count(found.rows.length, 'row')}`;
  notify(text);
  announce(text);
}

/** Return all rows and columns of a table of the kernel, in an order and with filters if the query has them. */
export async function allRows(where, query = {}) {
  const whole = { head: [], rows: [] };
  let page;
  for (let column = 0; !page || column < page.total_columns; column += COLUMNS) {
    let row = 0;
    do {
      page = await api.get(where, { ...query, first_row: row, rows: PAGE, first_column: column, columns: COLUMNS });
      for (const [at, cells] of page.cells.entries()) {
        whole.rows[row + at] ??= (page.labels[at] ?? []).map(textOf);
        whole.rows[row + at].push(...cells.map(textOf));
      }
      row += page.cells.length;
    } while (page.cells.length && row < page.found_rows);
    whole.head.push(...(column ? [] : page.label_names), ...page.columns.map((one) => one.name));
  }
  return { head: whole.head.map((name) => name ?? ''), rows: withDays(whole.rows) };
}

function textOf(value) {
  return String(value?.text ?? value ?? '');
}

/** Return a table as CSV; a value is as it was printed, whole numbers without `.0`. */
function asCsv({ head, rows }) {
  const quoted = (cell) => (/[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  return `${[head, ...rows].map((row) => row.map((cell) => quoted(isNumber(cell) ? cell.replace(/\.0+$/, '') : isMissing(cell) ? '' : cell)).join(',')).join('\n')}\n`;
}
