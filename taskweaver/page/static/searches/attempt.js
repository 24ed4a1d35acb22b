/** One attempt of a search: plan, changes, code, log, plots and what it learnt. */

import { button, failure, loading } from '../core/bits.js';
import { h } from '../core/dom.js';
import { changed } from '../core/loop.js';
import { metric, seconds, seen } from '../core/words.js';
import { codeBlock, diffLines } from '../text/highlight.js';
import { markdown } from '../text/markdown.js';
import { tabBar } from '../inspector/inspector.js';
import { chatWith, searches } from './data.js';
import { attemptNumber, isOpen, statusWords } from './layout.js';
import { talk } from './talk.js';

const TABS = [['talk', 'Chat'], ['plan', 'Plan'], ['diff', 'Diff'], ['code', 'Code'], ['log', 'Log'], ['learnt', 'Memory']];
let chosen = '';

const STEPS = [
  ['Draft', 'First versions are written; your own program, unchanged, is one of them.'],
  ['Improve', 'The best ones are changed step by step; failed ones are repaired.'],
  ['Repeat', 'Good attempts run again, so that luck does not win.'],
  ['Explain', 'Parts of the best one are taken away, to see what each is worth.'],
];

function whatWillHappen() {
  return [h('div', { class: 'pane-head' }, h('h2', {}, 'What will happen')),
    h('ol', { class: 'steps pad' }, STEPS.map(([name, text], at) => h('li', { class: 'row' }, h('span', { class: 'choice-number', 'aria-hidden': 'true' }, String(at + 1)), h('div', { class: 'grow' }, h('b', {}, name), h('p', { class: 'muted' }, text))))),
    h('p', { class: 'muted pad' }, 'Each attempt appears here, with its code and its log.')];
}

/** Return the pane of the attempt that is shown. */
export function attemptPane(id) {
  const { tree, run } = searches;
  const node = searches.node?.node;
  if (!id) return h('aside', { class: 'data-pane attempt', 'aria-label': 'Attempt' }, whatWillHappen());
  if (!node || node.id !== id) return h('aside', { class: 'data-pane attempt', 'aria-label': 'Attempt' }, loading());
  const isBest = tree?.run.best === id;
  const { repeats: again, status } = tree?.nodes.find((one) => one.node === id) ?? {};
  const isUnfinished = isOpen({ status });
  chosen ||= isUnfinished ? 'talk' : 'plan';
  const choose = (name) => {
    chosen = name;
    changed();
  };
  return h('aside', { class: 'data-pane attempt', 'aria-label': 'Attempt' },
    h('div', { class: 'pane-head' }, h('h2', {}, `Attempt ${node.step}`), h('span', { class: 'muted shrink' }, again ? `repeats ${attemptNumber(again)}` : seen(node.kind)), isBest ? h('span', { class: 'state done' }, 'best') : null,
      isUnfinished ? h('span', { class: 'muted end' }, statusWords(status)) : button('Chat with it', () => chatWith(run, id), { kind: 'primary end', sign: 'chat' })),
    tabBar(TABS, chosen, choose),
    h('div', { class: 'tab-panel', role: 'tabpanel', id: 'tab-panel', 'aria-labelledby': `tab-${chosen}`, tabindex: 0 }, chosen === 'talk' ? talk(status === 'running') : VIEWS[chosen](node)));
}

const VIEWS = { plan: planView, diff: diffView, code: codeView, log: logView, learnt: learntView };

function section(title, ...content) {
  return h('section', { class: 'data-section' }, h('h3', {}, title), content);
}

function planView(node) {
  return [value(node), planText(node.plan), node.error ? failure(seen(node.error.kind), seen(node.error.message)) : null, steps(node)];
}

/** A proposer that chooses values ends its plan with them: they are a table. */
function planText(plan) {
  if (!plan) return section('Plan', h('p', { class: 'muted' }, 'No plan.'));
  const [, text, json] = /^([\s\S]*?)\s*Values: (\{.*\})\s*$/.exec(plan) ?? [null, plan, '{}'];
  let values;
  try {
    values = Object.entries(JSON.parse(json));
  } catch {
    return section('Plan', markdown(plan));
  }
  return [
    text ? section('Plan', markdown(text)) : null,
    values.length ? section('Values', h('table', { class: 'pairs' }, h('tbody', {}, values.map(([name, one]) => h('tr', {}, h('th', { scope: 'row' }, seen(name)), h('td', {}, seen(typeof one === 'object' ? JSON.stringify(one) : one))))))) : null];
}

function value(node) {
  const { tree } = searches;
  const own = tree?.nodes.find((one) => one.node === node.id);
  if (!own || own.value === null) return null;
  const before = tree.nodes.find((one) => one.node === own.parent)?.value ?? null;
  return h('section', { class: 'data-section' },
    h('p', { class: 'big-value' }, metric(own.value), h('span', { class: 'muted' }, `${own.error ? ` ± ${metric(own.error, 2)}` : ''} ${seen(tree.run.metric)}`)),
    before === null ? null : h('p', { class: 'muted' }, effectText(own.value - before, own, tree.run.maximize)));
}

function effectText(effect, own, maximize) {
  return `${effect > 0 ? '+' : ''}${metric(effect, 3)} against its parent, attempt ${attemptNumber(own.parent)}: ${judged(effect, own.error, maximize)}`;
}

/** One measurement does not tell whether an effect is more than chance. */
function judged(effect, error, maximize) {
  if (!error) return `${effect === 0 ? 'the same' : effect > 0 ? 'higher' : 'lower'}, not yet certain: measured once`;
  const word = effect === 0 ? 'no change' : (maximize ? effect > 0 : effect < 0) ? 'better' : 'worse';
  return `${word}; noise ${metric(error, 2)}${Math.abs(effect) > 2 * error ? ', so the effect is real' : ': it may be chance'}`;
}

function steps(node) {
  const phases = (node.phases ?? []).filter((phase) => phase.status !== 'skipped');
  if (!phases.length) return null;
  return section('Steps', h('table', { class: 'pairs' }, h('thead', {}, h('tr', {}, ['step', 'time', 'outcome'].map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', {}, phases.map((phase) => h('tr', {}, h('td', {}, phase.name), h('td', {}, seconds(phase.seconds)), h('td', {}, phase.status))))));
}

function diffView(node) {
  const { diff } = searches.node;
  if (!node.parent) return section('Change', h('p', { class: 'muted' }, 'It has no parent: it was written from nothing.'));
  const title = `Change against its parent, attempt ${attemptNumber(node.parent)}`;
  return section(title, diff ? h('pre', { class: 'code', tabindex: 0, role: 'group', 'aria-label': title }, h('code', {}, diffLines(diff))) : h('p', { class: 'muted' }, 'Its program is that of its parent.'));
}

/** The files of an attempt's program and the commands that ran it; a script has its code alone. */
function codeView(node) {
  const { files, commands } = searches.node;
  const texts = Object.keys(files).length ? Object.entries(files) : Object.entries(node.artifacts?.code ? { 'the program': node.artifacts.code } : {});
  const ran = Object.entries(commands).filter(([, list]) => list.length);
  return [
    texts.length ? null : section('Program', h('p', { class: 'muted' }, 'No program.')),
    texts.map(([path, text]) => section(seen(path), codeBlock(text, languageOf(path), seen(path)))),
    ran.length ? section('Commands', ran.map(([phase, list]) => codeBlock(`# ${phase}\n${list.join('\n')}`, 'sh', `Commands of ${phase}`))) : null,
  ];
}

function languageOf(path) {
  const ending = path.split('.').pop();
  return ['json', 'sh', 'sql', 'diff'].includes(ending) ? ending : 'python';
}

/** What its phases printed, and how each ended. */
function logView(node) {
  const phases = new Map((node.phases ?? []).map((phase) => [phase.name, phase.message]));
  const printed = Object.entries(searches.node.logs).filter(([, text]) => text);
  const messages = [...phases].filter(([name, text]) => text && !printed.some(([one]) => one === name));
  const block = (name, text) => section(seen(name), h('pre', { class: 'output', tabindex: 0, role: 'group', 'aria-label': `Log of ${seen(name)}` }, seen(text)));
  if (!printed.length && !messages.length) return node.output ? block('Output', node.output) : section('Output', h('p', { class: 'muted' }, 'No output.'));
  return [...printed, ...messages].map(([name, text]) => block(name, text));
}

function learntView(node) {
  const text = node.analysis || Object.values(node.summary ?? {}).join('\n\n');
  return section('What it learnt', text ? markdown(String(text)) : h('p', { class: 'muted' }, 'Nothing was noted.'));
}
