/** One attempt of a search: plan, changes, code, log, plots and what it learnt. */

import { button, failure, loading } from '../core/bits.js';
import { h } from '../core/dom.js';
import { changed } from '../core/loop.js';
import { metric, seconds, seen } from '../core/words.js';
import { lineDiff } from '../text/diff.js';
import { codeBlock, diffLines } from '../text/highlight.js';
import { markdown } from '../text/markdown.js';
import { tabBar } from '../inspector/inspector.js';
import { chatWith, searches } from './data.js';

const TABS = [['plan', 'Plan'], ['diff', 'Diff'], ['code', 'Code'], ['log', 'Log'], ['learnt', 'Memory']];
let chosen = 'plan';

/** Return the pane of the attempt that is shown. */
export function attemptPane(id) {
  const { node, tree, run } = searches;
  if (!id) return h('aside', { class: 'data-pane attempt', 'aria-label': 'Attempt' }, h('p', { class: 'muted pad' }, 'Attempts stand here once the search has begun.'));
  if (!node || node.id !== id) return h('aside', { class: 'data-pane attempt', 'aria-label': 'Attempt' }, loading());
  const isBest = tree?.run.best === id;
  const choose = (name) => {
    chosen = name;
    changed();
  };
  return h('aside', { class: 'data-pane attempt', 'aria-label': 'Attempt' },
    h('div', { class: 'pane-head' }, h('h2', {}, `Attempt ${node.step}`), h('span', { class: 'muted' }, node.id), isBest ? h('span', { class: 'state done' }, 'best') : null,
      button('Chat with it', () => chatWith(run, id), { kind: 'primary end', sign: 'chat' })),
    tabBar(TABS, chosen, choose),
    h('div', { class: 'tab-panel', role: 'tabpanel', id: 'tab-panel', 'aria-labelledby': `tab-${chosen}`, tabindex: 0 }, VIEWS[chosen](node)));
}

const VIEWS = { plan: planView, diff: diffView, code: codeView, log: logView, learnt: learntView };

function section(title, ...content) {
  return h('section', { class: 'data-section' }, h('h3', {}, title), content);
}

function planView(node) {
  return [value(node), section('Plan', node.plan ? markdown(node.plan) : h('p', { class: 'muted' }, 'No plan.')), node.error ? failure(seen(node.error.kind), seen(node.error.message)) : null, steps(node)];
}

function value(node) {
  const values = Object.values(node.metric?.values ?? {});
  const { parent, tree } = searches;
  const before = parent && Object.values(parent.metric?.values ?? {});
  const own = tree?.nodes.find((one) => one.node === node.id);
  if (!values.length) return null;
  const mean = own?.value ?? values[0];
  const effect = before?.length && own ? own.value - (tree.nodes.find((one) => one.node === parent.id)?.value ?? own.value) : null;
  return h('section', { class: 'data-section' },
    h('p', { class: 'big-value' }, metric(mean), h('span', { class: 'muted' }, `${own?.error ? ` ± ${metric(own.error)}` : ''} ${seen(tree?.run.metric ?? '')}`)),
    effect === null ? null : h('p', { class: 'muted' }, effectText(effect, own, tree.run.maximize, parent)));
}

function effectText(effect, own, maximize, parent) {
  const isBetter = maximize ? effect > 0 : effect < 0;
  const noise = own.error ? (Math.abs(effect) > 2 * own.error ? `; noise ${metric(own.error)}, so the effect is real` : `; noise ${metric(own.error)}: it may be chance`) : '; measured once, so its noise is unknown';
  return `${effect > 0 ? '+' : ''}${metric(effect)} against its parent ${parent.id}, ${effect === 0 ? 'no change' : isBetter ? 'better' : 'worse'}${noise}`;
}

function steps(node) {
  const phases = (node.phases ?? []).filter((phase) => phase.status !== 'skipped');
  if (!phases.length) return null;
  return section('Steps', h('table', { class: 'pairs' }, h('thead', {}, h('tr', {}, ['step', 'time', 'outcome'].map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', {}, phases.map((phase) => h('tr', {}, h('td', {}, phase.name), h('td', {}, seconds(phase.seconds)), h('td', {}, phase.status))))));
}

/** The files that an attempt wrote, as one text; a script has one. */
function programOf(node) {
  const files = node?.artifacts?.coding?.workspace?.files ?? [];
  if (!files.length) return node?.artifacts?.code ?? '';
  return files.map((file) => (files.length > 1 ? `# ${file.path}\n${file.content}` : file.content)).join('\n');
}

function diffView(node) {
  const { parent } = searches;
  if (!parent) return section('Change', h('p', { class: 'muted' }, 'It has no parent: it was written from nothing.'));
  return section(`Change against its parent ${parent.id}`, h('pre', { class: 'code', tabindex: 0, role: 'group', 'aria-label': 'Changes' }, h('code', {}, diffLines(lineDiff(programOf(parent), programOf(node))))));
}

function codeView(node) {
  return section('Program', programOf(node) ? codeBlock(programOf(node), 'python', 'Program') : h('p', { class: 'muted' }, 'No program.'));
}

function logView(node) {
  const output = node.output || (node.phases ?? []).map((phase) => phase.message).filter(Boolean).join('\n');
  return section('Output', output ? h('pre', { class: 'output', tabindex: 0, role: 'group', 'aria-label': 'Output' }, seen(output)) : h('p', { class: 'muted' }, 'No output.'));
}

function learntView(node) {
  const text = node.analysis || Object.values(node.summary ?? {}).join('\n\n');
  return section('What it learnt', text ? markdown(String(text)) : h('p', { class: 'muted' }, 'Nothing was noted.'));
}
