/** A tidy layout of a tree of attempts: children in order, parents above their middle. */

import { metric, seen } from '../core/words.js';

const FAILED = new Set(['buggy', 'timeout', 'lost']);

/**
 * Return the nodes with places: `x` in columns, `y` in levels, `fill` from 0 to 1 by the metric,
 * and whether they lie on the way to the best.
 */
export function layout(nodes, { best, maximize }) {
  const made = new Map(nodes.map((node) => [node.node, { ...node, children: [], x: 0, y: 0, isFailed: FAILED.has(node.status), isBest: node.node === best, isOnWay: false }]));
  const roots = [];
  for (const node of made.values()) {
    const parent = made.get(node.parent);
    if (parent) parent.children.push(node);
    else roots.push(node);
  }
  let column = 0;
  const stack = roots.map((root) => [root, 0, false]).reverse();
  while (stack.length) {
    const [node, level, isDone] = stack.pop();
    if (isDone) {
      node.x = (node.children[0].x + node.children.at(-1).x) / 2;
      continue;
    }
    node.y = level;
    if (!node.children.length) {
      node.x = column;
      column += 1;
    } else {
      stack.push([node, level, true]);
      for (const child of node.children.toReversed()) stack.push([child, level + 1, false]);
    }
  }
  for (let node = made.get(best); node; node = made.get(node.parent)) node.isOnWay = true;
  fillByMetric([...made.values()], maximize);
  const all = [...made.values()];
  return { nodes: all, byId: made, width: Math.max(1, column), height: 1 + all.reduce((most, node) => Math.max(most, node.y), 0) };
}

/** Ranks, not values, decide the fill: one far value does not make all others look alike. */
function fillByMetric(nodes, maximize) {
  const valued = nodes.filter((node) => node.value !== null && node.value !== undefined && !node.isFailed);
  valued.sort((a, b) => (maximize ? a.value - b.value : b.value - a.value));
  for (let at = valued.length - 1; at >= 0; at -= 1) {
    const [node, above] = [valued[at], valued[at + 1]];
    node.fill = !above ? 1 : node.value === above.value ? above.fill : at / (valued.length - 1);
  }
}

const STATUS_WORDS = { ok: 'done', buggy: 'failed', timeout: 'failed: out of time', lost: 'failed: its process ended', cancelled: 'not finished' };

/** Return how an attempt ended, or that it runs. */
export function statusWords(status) {
  return STATUS_WORDS[status] ?? status;
}

/** Return whether an attempt runs, or was cut off. */
export function isOpen({ status }) {
  return ['running', 'cancelled'].includes(status);
}

/** Return the number of an attempt: `4` for `n0004`. */
export function attemptNumber(id) {
  return /^n0*(\d+)$/.exec(id)?.[1] ?? seen(id);
}

/** Return what is said of a node. */
export function nodeLabel(node, name) {
  const value = node.value === null || node.value === undefined ? statusWords(node.status) : `${seen(name)} ${metric(node.value)}`;
  const kind = node.repeats ? `repeats ${attemptNumber(node.repeats)}` : node.kind;
  return `Attempt ${attemptNumber(node.node)}, ${kind}, ${value}${node.isBest ? ', best' : ''}`;
}
