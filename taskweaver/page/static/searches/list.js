/** The attempts of a search as a list, for keyboards and readers. */

import { h } from '../core/dom.js';
import { metric, seconds, seen } from '../core/words.js';
import { attemptNumber, statusWords } from './layout.js';

const MOST = 2_000;

/** Return the tree as a treegrid. */
export function treeList(placed, run, chosen, choose) {
  const rows = [];
  const stack = placed.nodes.filter((node) => !placed.byId.has(node.parent)).toReversed();
  while (stack.length && rows.length < MOST) {
    const node = stack.pop();
    rows.push(node);
    stack.push(...node.children.toReversed());
  }
  const key = (event, at) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === 'Enter') choose(rows[at].node);
    else if (step) event.currentTarget.parentElement.children[at + step]?.focus();
    else return;
    event.preventDefault();
  };
  return h('div', { class: 'table-box tree-list', tabindex: 0, role: 'group', 'aria-label': 'Attempts' }, h('table', { role: 'treegrid', 'aria-label': 'Attempts' },
    h('thead', {}, h('tr', {}, ['attempt', seen(run.metric), 'state', 'time', 'plan'].map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', {}, rows.map((node, at) => h('tr', { key: node.node, tabindex: node.node === chosen || (at === 0 && !chosen) ? 0 : -1, 'aria-level': node.y + 1, 'aria-selected': String(node.node === chosen), class: node.node === chosen ? 'chosen' : '', onclick: () => choose(node.node), onkeydown: (event) => key(event, at) },
      h('td', { style: { 'padding-left': `${8 + node.y * 14}px` } }, `Attempt ${attemptNumber(node.node)}`), h('td', { class: 'right' }, metric(node.value)), h('td', {}, node.isBest ? 'best' : statusWords(node.status)), h('td', { class: 'right' }, seconds(node.seconds)), h('td', { class: 'shrink' }, seen(node.plan)))))));
}
