/** The metric over the attempts: best so far as steps, each attempt with its standard error. */

import { h } from '../core/dom.js';
import { metric as shortValue, seen } from '../core/words.js';

const WIDTH = 680;
const HEIGHT = 186;
const LEFT = 64;
const BOTTOM = 42;
const TICKS = 4;

/** Return the curve of a run's attempts. */
export function curve(nodes, run) {
  const valued = nodes.map((node, at) => ({ ...node, at })).filter((node) => node.value !== null && node.value !== undefined);
  if (!valued.length) return h('p', { class: 'muted pad' }, 'The curve begins with the first value.');
  const errors = valued.flatMap((node) => [node.value - (node.error ?? 0), node.value + (node.error ?? 0)]);
  let [low, high] = [Math.min(...errors), Math.max(...errors)];
  if (low === high) [low, high] = [low - Math.abs(low || 1) * 0.1, high + Math.abs(high || 1) * 0.1];
  const x = (at) => LEFT + ((at + 0.5) / nodes.length) * (WIDTH - LEFT - 12);
  const y = (value) => 10 + ((high - value) / (high - low)) * (HEIGHT - BOTTOM - 18);
  const failed = nodes.map((node, at) => ({ ...node, at })).filter((node) => ['buggy', 'timeout', 'lost'].includes(node.status));
  const unit = `${seen(run.metric)}${run.unit ? `, ${seen(run.unit)}` : ''}, ${run.maximize ? 'higher' : 'lower'} is better`;
  // Repetitions measure a program again: the best of them would be the luckiest.
  const { path, best } = bestLine(valued.filter((node) => node.kind !== 'seed'), run.maximize, x, y, nodes.length);
  const isMean = run.best_value !== null && run.best_value !== best;
  return h('figure', { class: 'curve' }, h('figcaption', {}, h('b', {}, 'Best so far '), h('span', { class: 'muted' }, unit, isMean ? `; as measured: the best attempt has ${shortValue(run.best_value)} as the mean of its repetitions` : '')),
    h('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': `Best so far of ${nodes.length} attempts: ${shortValue(run.best_value)}; ${unit}` },
      Array.from({ length: TICKS }, (_, at) => low + ((high - low) * at) / (TICKS - 1)).map((value) => [
        h('path', { class: 'grid-line', d: `M${LEFT} ${y(value)}H${WIDTH - 12}` }), h('text', { class: 'tick', x: LEFT - 8, y: y(value) + 4, 'text-anchor': 'end' }, shortValue(value))]),
      columns(valued).map((node) => [
        node.error ? h('path', { class: 'error-line', d: `M${x(node.at)} ${y(node.value - node.error)}V${y(node.value + node.error)}` }) : null,
        h('circle', { class: 'point', cx: x(node.at), cy: y(node.value), r: 2.5 })]),
      h('path', { class: 'best-line', d: path }),
      failed.slice(0, WIDTH).map((node) => h('path', { class: 'failed-mark small-mark', d: `M${x(node.at) - 3} ${HEIGHT - 32}l6 6m0 -6l-6 6` })),
      h('text', { class: 'tick', x: WIDTH - 12, y: HEIGHT - 2, 'text-anchor': 'end' }, `attempt ${nodes.length}`)));
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
    const isBetter = best === null || (maximize ? node.value > best : node.value < best);
    if (!isBetter) continue;
    path += best === null ? `M${x(node.at)} ${y(node.value)}` : `H${x(node.at)}V${y(node.value)}`;
    best = node.value;
  }
  return { path: path && `${path}H${x(total - 1)}`, best };
}
