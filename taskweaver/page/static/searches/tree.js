/** The tree of a search: SVG with nodes that can be focused, up to 500; a canvas above that. */

import { h, memo } from '../core/dom.js';
import { seen } from '../core/words.js';
import { canvasTree } from './canvas.js';
import { attemptNumber, isOpen, nodeLabel } from './layout.js';

const STEP_X = 38;
const STEP_Y = 58;
const MARGIN = 28;
const MOST_SVG = 500;

/** Return the tree; `choose(node)` is called for the attempt that is clicked. */
export function tree(placed, run, chosen, choose) {
  if (placed.nodes.length > MOST_SVG) return canvasTree(placed, chosen, choose);
  return memo(`tree-${run.name}`, [placed, chosen], () => svgTree(placed, run, chosen, choose));
}

function svgTree(placed, run, chosen, choose) {
  const width = placed.width * STEP_X + 2 * MARGIN;
  const height = placed.height * STEP_Y + MARGIN;
  const x = (node) => MARGIN + (node.x + 0.5) * STEP_X;
  const y = (node) => MARGIN / 2 + (node.y + 0.35) * STEP_Y;
  const edges = placed.nodes.filter((node) => placed.byId.has(node.parent)).map((node) => {
    const parent = placed.byId.get(node.parent);
    const middle = (y(parent) + y(node)) / 2;
    return h('path', { key: `e-${node.node}`, class: `edge-line${node.isOnWay ? ' way-line' : ''}`, d: `M${x(parent)} ${y(parent)}C${x(parent)} ${middle} ${x(node)} ${middle} ${x(node)} ${y(node)}` });
  });
  return h('svg', { class: 'search-tree', width, height, viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': `Attempts of ${seen(run.title)}` },
    edges, placed.nodes.map((node) => nodeMark(node, run, x(node), y(node), node.node === chosen, choose)));
}

function nodeMark(node, run, x, y, isChosen, choose) {
  const radius = 5 + 4 * (node.fill ?? 0);
  const choosing = (event) => {
    if (event.type === 'keydown' && !['Enter', ' '].includes(event.key)) return;
    event.preventDefault();
    choose(node.node);
  };
  const shape = node.isFailed ? h('path', { class: 'failed-mark', d: `M${x - 5} ${y - 5}L${x + 5} ${y + 5}M${x + 5} ${y - 5}L${x - 5} ${y + 5}` })
    : h('circle', { class: isOpen(node) ? 'running-mark' : 'value-mark', cx: x, cy: y, r: isOpen(node) ? 7 : radius, style: { '--fill': String(0.35 + 0.65 * (node.fill ?? 0)) } });
  return h('g', { key: node.node, class: `node${isChosen ? ' chosen' : ''}`, role: 'button', tabindex: 0, 'aria-label': nodeLabel(node, run.metric), 'aria-pressed': String(isChosen), onclick: choosing, onkeydown: choosing, 'data-node': node.node },
    h('title', {}, `${nodeLabel(node, run.metric)}\n${seen(node.plan)}`),
    h('circle', { class: 'target', cx: x, cy: y, r: 14 }),
    h('text', { class: 'tick', x: x + radius + (node.isBest ? 6 : 2), y: y - 4, 'aria-hidden': 'true' }, attemptNumber(node.node)),
    isChosen ? h('circle', { class: 'chosen-ring', cx: x, cy: y, r: 13 }) : null,
    node.isBest ? h('circle', { class: 'best-ring', cx: x, cy: y, r: radius + 4 }) : null, shape);
}
