/** Charts of a small table, drawn by the page: one column of labels, one of numbers. */

import { h } from '../core/dom.js';
import { seen } from '../core/words.js';
import { numberOf, shownNumbers } from '../text/plain_table.js';

const [HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [280, 64, 16, 22, 28];
const MOST_BARS = 40;

/** Return a chart of rows `[label, number]`; null if they are too many or not numbers. `kind` is `line` or `bar`. */
export function chart(kind, { head, rows }) {
  const values = rows.map((row) => numberOf(row[1]));
  if (head.length !== 2 || rows.length < 2 || rows.length > (kind === 'bar' ? MOST_BARS : 2000) || values.some((value) => value === null)) return null;
  const isNarrow = matchMedia('(max-width: 760px)').matches;
  const width = isNarrow ? 400 : 640;
  const ticks = ticksOf(Math.min(0, ...values), Math.max(...values, 0));
  const [low, high] = [ticks[0], ticks.at(-1)];
  const step = (width - LEFT - RIGHT) / rows.length;
  const x = (at) => LEFT + step * (at + 0.5);
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (value - low) / (high - low || 1));
  const shown = shownNumbers(head[1], rows.map((row) => row[1]));
  const [most, least] = [values.indexOf(Math.max(...values)), values.indexOf(Math.min(...values))];
  const point = (at) => h('circle', { class: at === most || at === least ? 'dot strong-dot' : 'dot', cx: x(at), cy: y(values[at]), r: at === most || at === least ? 4.5 : 3 });
  const label = (at, isAbove) => h('text', { class: 'value-label', x: x(at), y: y(values[at]) + (isAbove || kind === 'bar' || y(values[at]) + 18 > HEIGHT - BOTTOM ? -8 : 18), 'text-anchor': 'middle' }, shown[at]);
  const names = namesOf(rows.map((row) => row[0]));
  const every = Math.ceil((rows.length * (Math.max(...names.map((name) => name.length)) * 7 + 10)) / (width - LEFT - RIGHT));
  const marks = kind === 'bar'
    ? values.map((value, at) => h('rect', { class: 'data-bar', x: x(at) - step * 0.36, y: Math.min(y(value), y(0)), width: step * 0.72, height: Math.max(1, Math.abs(y(value) - y(0))) }))
    : [h('path', { class: 'data-line', d: values.map((value, at) => `${at ? 'L' : 'M'}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join('') }), rows.length <= 60 ? values.map((_, at) => point(at)) : [point(most), point(least)]];
  const text = `highest ${labelOf(rows[most][0])} ${shown[most]}, lowest ${labelOf(rows[least][0])} ${shown[least]}`;
  return h('svg', { class: 'chart', viewBox: `0 0 ${width} ${HEIGHT}`, role: 'img', 'aria-label': `${kind === 'bar' ? 'Bars' : 'Line'} of ${seen(head[1])}: ${text}` },
    ticks.map((tick) => [h('line', { class: 'grid-line', x1: LEFT, x2: width - RIGHT, y1: y(tick), y2: y(tick) }), h('text', { class: 'tick', x: LEFT - 8, y: y(tick) + 4, 'text-anchor': 'end' }, tick.toLocaleString('en-US'))]),
    names.map((name, at) => (at % every ? null : h('text', { class: 'tick', x: x(at), y: HEIGHT - 8, 'text-anchor': 'middle' }, seen(name)))),
    marks, label(most, true), most === least ? null : label(least, false));
}

/** Round numbers that enclose two values. */
function ticksOf(low, high) {
  const rough = (high - low || 1) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough);
  const first = Math.floor(low / step);
  const last = Math.ceil(high / step);
  return Array.from({ length: last - first + 1 }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}

/** Return a label as it is read: a month by its name. */
export function labelOf(text) {
  const isMonth = /^\d{4}-(?:0\d|1[0-2])$/.test(text);
  return isMonth ? new Date(`${text}-01T00:00:00Z`).toLocaleDateString('en-US', { month: 'long', year: 'numeric', timeZone: 'UTC' }) : seen(text);
}

/** Months of one year by their names; other labels shortened. */
function namesOf(labels) {
  const isYear = labels.length > 1 && labels.every((label) => /^\d{4}-\d\d$/.test(label) && label.slice(0, 4) === labels[0].slice(0, 4));
  return labels.map((label) => (isYear ? new Date(Date.UTC(2000, Number(label.slice(5)) - 1)).toLocaleDateString('en-US', { month: 'short', timeZone: 'UTC' }) : label.length > 14 ? `${label.slice(0, 13)}…` : label));
}
