/** The metric over the attempts: best so far as steps, each attempt with its standard error. */

import { h } from '../core/dom.js';
import { count, metric as shortValue, seen } from '../core/words.js';

const WIDTH = 680;
const HEIGHT = 186;
const LEFT = 64;
const BOTTOM = 42;
const TICKS = 4;

/**
 * Return the curve of a run's attempts, on the measure of the best: one that was repeated stands at
 * its mean, and its repetitions have no point of their own.
 */
export function curve(nodes, run) {
  const placed = nodes.map((node, at) => ({ ...node, at })).filter((node) => !node.repeats);
  const valued = placed.filter((node) => node.value !== null && node.value !== undefined);
  if (!valued.length) return h('p', { class: 'muted pad' }, 'The curve begins with the first value.');
  const errors = valued.flatMap((node) => [node.value - (node.error ?? 0), node.value + (node.error ?? 0)]);
  let [low, high] = [Math.min(...errors), Math.max(...errors)];
  if (low === high) [low, high] = [low - Math.abs(low || 1) * 0.1, high + Math.abs(high || 1) * 0.1];
  const x = (at) => LEFT + ((at + 0.5) / nodes.length) * (WIDTH - LEFT - 12);
  const y = (value) => 10 + ((high - value) / (high - low)) * (HEIGHT - BOTTOM - 18);
  const failed = placed.filter((node) => ['buggy', 'timeout', 'lost'].includes(node.status));
  const unit = `${seen(run.metric)}${run.unit ? `, ${seen(run.unit)}` : ''}, ${run.maximize ? 'higher' : 'lower'} is better`;
  const isUnsure = (node) => run.best_value !== null && node.node !== run.best && isBetter(node.value, run.best_value, run.maximize);
  const notes = [valued.some((node) => node.error) ? '; attempts that were repeated stand at their mean' : '', valued.some(isUnsure) ? '; hollow: better by one measurement, which is not enough to be the best' : ''];
  return h('figure', { class: 'curve' }, h('figcaption', {}, h('b', {}, 'Best so far '), h('span', { class: 'muted' }, unit, notes)),
    h('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': `Best so far of ${placed.length} attempts: ${shortValue(run.best_value)}; ${unit}` },
      Array.from({ length: TICKS }, (_, at) => low + ((high - low) * at) / (TICKS - 1)).map((value) => [
        h('path', { class: 'grid-line', d: `M${LEFT} ${y(value)}H${WIDTH - 12}` }), h('text', { class: 'tick', x: LEFT - 8, y: y(value) + 4, 'text-anchor': 'end' }, shortValue(value))]),
      h('path', { class: 'best-line', d: bestLine(valued.filter((node) => !isUnsure(node)), run.maximize, x, y, nodes.length) }),
      columns(valued).map((node) => [
        node.error ? h('path', { class: 'error-line', d: `M${x(node.at)} ${y(node.value - node.error)}V${y(node.value + node.error)}` }) : null,
        h('circle', { class: isUnsure(node) ? 'point unsure' : 'point', cx: x(node.at), cy: y(node.value), r: 2.5 })]),
      valued.filter((node) => node.node === run.best).map((node) => h('circle', { class: 'best-ring', cx: x(node.at), cy: y(node.value), r: 6 })),
      failed.slice(0, WIDTH).map((node) => h('path', { class: 'failed-mark small-mark', d: `M${x(node.at) - 3} ${HEIGHT - 32}l6 6m0 -6l-6 6` })),
      h('text', { class: 'tick', x: LEFT, y: HEIGHT - 2 }, 'attempt 1'), h('text', { class: 'tick', x: WIDTH - 12, y: HEIGHT - 2, 'text-anchor': 'end' }, lastText(nodes))));
}

/** The numbers of attempts go on over repetitions. */
function lastText(nodes) {
  const repeated = nodes.filter((node) => node.repeats).length;
  return `attempt ${nodes.length}${repeated ? `, with ${count(repeated, 'repetition')}` : ''}`;
}

function isBetter(value, than, maximize) {
  return maximize ? value > than : value < than;
}

/** At most one point for each pixel column. */
function columns(valued) {
  const step = Math.max(1, Math.ceil(valued.length / WIDTH));
  return valued.filter((_, at) => at % step === 0);
}

function bestLine(valued, maximize, x, y, total) {
  let best = null;
  let path = '';
  for (const node of valued) {
    if (best !== null && !isBetter(node.value, best, maximize)) continue;
    path += best === null ? `M${x(node.at)} ${y(node.value)}` : `H${x(node.at)}V${y(node.value)}`;
    best = node.value;
  }
  return path && `${path}H${x(total - 1)}`;
}
