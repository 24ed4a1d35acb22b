/** Tables that were printed as aligned text, as pandas prints frames, read back. */

const MOST_CHARS = 200_000;
const MOST_ROWS = 1_000;

/**
 * Return the cells of an aligned text as `{head, rows}`; null if it is no table. Columns are where
 * at least two places are blank in every line.
 */
export function readTable(text) {
  if (!text || text.length > MOST_CHARS || text.includes('\t')) return null;
  const lines = text.replace(/\s+$/, '').split('\n');
  const size = /^\[\d+ rows x \d+ columns\]$/.test(lines.at(-1)) ? lines.pop() : '';
  while (lines.length && !lines.at(-1).trim()) lines.pop();
  if (lines.length < 2 || lines.length > MOST_ROWS || lines.some((line) => !line.trim())) return null;
  const columns = columnsOf(lines);
  if (columns.length < 2) return null;
  const rows = lines.map((line) => columns.map(([from, to]) => line.slice(from, to).trim()));
  const head = rows.shift();
  if (isIndexName(head, rows[0])) head[0] = rows.shift()[0];
  if (!rows.length || !isTable(head, rows)) return null;
  return { head, rows, note: size.replace(/[[\]]/g, '') };
}

function columnsOf(lines) {
  const width = Math.max(...lines.map((line) => line.length));
  const blank = Array.from({ length: width }, (_, at) => lines.every((line) => (line[at] ?? ' ') === ' '));
  const columns = [];
  let from = null;
  for (let at = 0; at <= width; at += 1) {
    const isGap = at === width || (blank[at] && (blank[at + 1] ?? true));
    if (!isGap && from === null && !blank[at]) from = at;
    if (isGap && from !== null) {
      columns.push([from, at]);
      from = null;
    }
  }
  return columns;
}

function isIndexName(head, row) {
  return !head[0] && row && row[0] && row.slice(1).every((cell) => !cell);
}

function isTable(head, rows) {
  const names = head.slice(1).filter(Boolean);
  // Where names and cells of a column both have several words, it may be two columns: text is safe.
  const isSeveral = (text) => text.includes(' ');
  if (head.some((name, at) => isSeveral(name) && rows.some((row) => isSeveral(row[at])))) return false;
  const full = rows.filter((row) => row.every(Boolean)).length;
  return names.length === head.length - 1 && full >= rows.length / 2 && rows.some((row) => row.slice(1).some(isNumber));
}

/** Return whether a cell is a number. */
export function isNumber(text) {
  return /^-?[\d,]*\.?\d+(e[+-]?\d+)?%?$/i.test(text);
}

/** Return whether a cell stands for a missing value. */
export function isMissing(text) {
  return ['NaN', 'NaT', 'None', '<NA>', 'nan', 'null', '', '...'].includes(text);
}

/** Return the number of a cell; null if it is none. */
export function numberOf(text) {
  return isNumber(text) ? Number.parseFloat(text.replace(/[,%]/g, '')) : null;
}

const PLAIN_NAME = /(?:^|[^a-z])(?:years?|jahr|ids?|zip|plz|code|phone|nr|no|#)(?:[^a-z]|$)|Id$|^$/i;

/** Return the cells of a column as they are read best: separators of thousands, no `.0`, few digits. Others stay. */
export function shownNumbers(name, cells) {
  const values = cells.map(numberOf);
  const numbers = values.filter((value) => value !== null);
  if (!numbers.length || cells.some((cell, at) => (values[at] === null && !isMissing(cell)) || /[,%e]/i.test(cell))) return cells;
  const most = Math.max(...numbers.map(Math.abs));
  if (most < 1 && most > 0) return cells;
  const written = Math.max(...cells.map((cell) => cell.split('.')[1]?.length ?? 0));
  const digits = numbers.every(Number.isInteger) ? 0 : Math.min(written, most >= 100 ? 2 : 3);
  const isPlain = PLAIN_NAME.test(name);
  const shown = (value) => value.toLocaleString('en-US', { maximumFractionDigits: digits, minimumFractionDigits: digits, useGrouping: !isPlain });
  return cells.map((cell, at) => (values[at] === null ? cell : shown(values[at])));
}

const MIDNIGHT = /(?<=^\d{4}-\d\d-\d\d)T00:00:00$/;

/** Return rows of texts whose columns of days alone are without their midnights. */
export function withDays(rows) {
  const isDay = (rows[0] ?? []).map((_, at) => rows.every((row) => !row[at] || MIDNIGHT.test(row[at])));
  return rows.map((row) => row.map((cell, at) => (isDay[at] ? cell.replace(MIDNIGHT, '') : cell)));
}

/** Return the rows in the order of a column; missing values stay last. */
export function sortedRows(rows, column, isDown) {
  const value = (text) => (isNumber(text) ? Number.parseFloat(text.replace(/[,%]/g, '')) : null);
  const sign = isDown ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [one, two] = [a[column], b[column]];
    if (isMissing(one) || isMissing(two)) return isMissing(one) - isMissing(two);
    const [x, y] = [value(one), value(two)];
    if (x !== null && y !== null) return sign * (x - y);
    return sign * one.localeCompare(two);
  });
}
